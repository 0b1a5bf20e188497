"""The one error type whose message is written for the user, and the hint that a typo gets."""

from collections.abc import Iterable


class AnatomicaError(ValueError):
    """Bad input, said in a sentence: what was given, what was expected, what to do.

    The command line prints only the message and exits with code 2; a library user sees a ValueError.
    """


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint for an error message: the known word that is most like the given one, or nothing.

    >>> nearest("cardica", ["cardiac", "spinal"])
    " (did you mean 'cardiac'?)"
    """
    import difflib

    by_fold = {x.lower(): x for x in known}
    close = difflib.get_close_matches(word.lower(), by_fold, 1)
    return f" (did you mean {by_fold[close[0]]!r}?)" if close else ""
