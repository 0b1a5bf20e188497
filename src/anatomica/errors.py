"""The one error type whose message is written for the user, and the hint that a typo gets."""

from collections.abc import Iterable


class AnatomicaError(ValueError):
    """Bad input, said in a sentence: what was given, what was expected, what to do.

    The command line prints only the message and exits with code 2; a library user sees a ValueError.
    """


def shown(value: object, most: int = 60) -> str:
    """A value as a user wrote it, for an error message: on one line, and cut if it is long.

    >>> shown("a" * 100, most=8)
    "'aaaaaaa ..."
    """
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # a number of more digits than Python writes
        return "a very long number"
    return text if len(text) <= most else f"{text[:most]} ..."


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint for an error message: the known word that is most like the given one, or nothing.

    >>> nearest("cardica", ["cardiac", "spinal"])
    " (did you mean 'cardiac'?)"
    """
    import difflib

    by_fold = {x.lower(): x for x in known}
    close = difflib.get_close_matches(word.lower(), by_fold, 1)
    return f" (did you mean {by_fold[close[0]]!r}?)" if close else ""
