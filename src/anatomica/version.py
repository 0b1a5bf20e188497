"""The one source of the version; the build reads it too."""

__version__ = "0.2.0.dev0"
