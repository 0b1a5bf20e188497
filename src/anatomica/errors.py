"""The one error type whose message is written for the user, and the hint that a typo gets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


class AnatomicaError(ValueError):
    """Bad input, said in a sentence: what was given, what was expected, what to do.

    The command line prints only the message and exits with code 2; a library user sees a ValueError.
    """


@contextmanager
def naming(what: object) -> Iterator[None]:
    """Errors in the body begin with the file or folder that they are about, if they do not name it anyway."""
    try:
        yield
    except AnatomicaError as error:
        if str(what) in str(error):
            raise
        raise AnatomicaError(f"{what}: {error}") from None


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


def first_problem(error: ValidationError) -> str:
    """Of what pydantic refused: where, what is wrong, and what was found, in a few words."""
    problem = error.errors()[0]
    where = ".".join(map(str, problem["loc"])) or "it"
    message = problem["msg"].removeprefix("Value error, ")
    return f"{where}: {message[:1].lower()}{message[1:]}, found {shown(problem['input'])}"
