"""What can go wrong, by name. Every message says what happened and what to do, in a line or two."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlap.engine.measurement import Measurement


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
