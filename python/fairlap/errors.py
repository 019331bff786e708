"""What can go wrong, by name. Every message says what happened and what to do, in a line or two."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlap.engine.measurement import Measurement


NOT_ENOUGH_MEMORY = "there is not enough memory for the samples, eight bytes each; ask for fewer"


class FairlapError(Exception):
    """The root of all errors fairlap raises on purpose."""


class WrongRequest(FairlapError, ValueError):
    """An argument has a value or a type that cannot be measured with."""


class NotAvailable(FairlapError, RuntimeError):
    """A method or source was asked for that this machine does not have; the message says why."""


class CallableRaised(FairlapError):
    """The timed callable raised. Its exception is the cause; the samples so far are in ``result``."""

    def __init__(self, message: str, result: Measurement) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[type[CallableRaised], tuple[str, Measurement]]:
        return type(self), (str(self), self.result)


def shortened(text: str, most: int = 200) -> str:
    """The first line of a text, cut where it gets long."""
    line = next(iter(text.strip().splitlines()), "")
    return line if len(line) <= most else f"{line[:most]}..."


def shown(value: object) -> str:
    """A stranger's object in one line, even when its own text raises."""
    try:
        return shortened(repr(value))
    except Exception:
        return f"an object of type {type(value).__qualname__}"


def described(error: BaseException) -> str:
    """A stranger's exception in one line, even when its own text raises."""
    kind = type(error).__name__
    try:
        text = shortened(str(error))
    except BaseException:  # a text that raises KeyboardInterrupt must not take the samples with it
        return f"{kind} (its text cannot be shown)"
    return f"{kind}: {text}" if text else kind
