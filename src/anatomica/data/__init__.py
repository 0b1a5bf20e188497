"""Data: phantoms, importers of public data sets, and the one cache format that training reads."""

from anatomica.data.cache import Cache, Case, Exclusion, open_cache, split_of
from anatomica.data.sources.phantoms import build_phantom_cache

__all__ = ["Cache", "Case", "Exclusion", "build_phantom_cache", "open_cache", "split_of"]
