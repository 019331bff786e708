"""Errors that fairlap raises on purpose, each with a stable code.

A message says what is wrong and what to do, in one or two lines. The command line and the JSON documents carry the
code with the message; ``fairlap explain CODE`` prints its section of codes.md.
"""

from __future__ import annotations

import re

from fairlap.secrets import without_secrets_or_queries

NOT_ENOUGH_MEMORY = "there is not enough memory for the samples, eight bytes each; ask for fewer"


class FairlapError(Exception):
    """Base class of the errors that fairlap raises on purpose.

    A subclass has its own ``code``; `code=` gives a single error a more specific one.
    """

    code = "E_FAIRLAP"

    def __init__(self, *arguments: object, code: str = "") -> None:
        super().__init__(*(without_secrets_or_queries(each) if isinstance(each, str) else each for each in arguments))
        if code:
            self.code = code


class InvalidRequest(FairlapError, ValueError):
    """An argument, option or file has a value or type that fairlap does not accept."""

    code = "E_REQUEST"


class NotAvailable(FairlapError, RuntimeError):
    """This machine lacks a method or source that was asked for; the message gives the reason."""

    code = "E_NOT_AVAILABLE"


class NotWritten(FairlapError):
    """A file that was asked for is lost: the disk is full, or its folder went away while the command ran."""

    code = "E_FILE"


def reason_of(error: BaseException) -> str:
    """Say what went wrong, without the operating system's number for it."""
    return getattr(error, "strerror", None) or str(error)


def shortened(text: str, most: int = 200) -> str:
    """Keep the first line of a text, cut where it gets long."""
    line = next(iter(text.strip().splitlines()), "")
    return line if len(line) <= most else f"{line[:most]}..."


def last_line(text: str) -> str:
    """Return the last line that is not blank."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


_PLACE = re.compile(r"(Check '.*|Exception from .*|While .*|\(Refer to .*|#+ .*|[-=^~\s]+)")
_ENDS = re.compile(r"Original traceback|Traceback|To facilitate|Set TORCH")
_MOST_OF_A_CAUSE = 400


def cause_of(error: BaseException) -> str:
    """Describe another library's exception in one line: the first of those that led to it.

    The places in its source that libraries put before what went wrong are left out.
    """
    seen = {id(error)}
    while (before := error.__cause__) is not None and id(before) not in seen:
        seen.add(id(before))
        error = before
    return detail_of(error)


def detail_of(error: BaseException) -> str:
    """As ``cause_of``, of this exception alone."""
    kind = type(error).__name__
    try:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    except BaseException:  # as in ``described``
        return f"{kind} (its text cannot be shown)"
    end = next((place for place, line in enumerate(lines) if place and _ENDS.match(line)), len(lines))
    said = [line for line in lines[:end] if not _PLACE.fullmatch(line)] or lines
    return f"{kind}: {shortened(' '.join(said), _MOST_OF_A_CAUSE)}" if said else kind


def shown(value: object) -> str:
    """Show any object in one line, even when its own text raises, and arrays by their shape."""
    kind = type(value)
    try:
        if kind.__name__ == "ndarray":
            return f"an array of shape {tuple(value.shape)}"  # type: ignore[attr-defined]
        if kind.__repr__ is not object.__repr__:
            return shortened(repr(value))
    except Exception:  # its repr failed, or it only has the name of an array
        return f"an object of type {kind.__qualname__}"
    return f"an object of type {kind.__qualname__}"


def described(error: BaseException) -> str:
    """Describe any exception in one line, even when its own text raises."""
    kind = type(error).__name__
    try:
        text = shortened(str(error))
    except BaseException:  # a text that raises KeyboardInterrupt must not take the samples with it
        return f"{kind} (its text cannot be shown)"
    return f"{kind}: {text}" if text else kind
