"""The one error type whose message is written for the user."""


class AnatomicaError(ValueError):
    """Bad input, said in a sentence: what was given, what was expected, what to do.

    The command line prints the message alone and exits with code 2; a library user sees a ValueError.
    """
