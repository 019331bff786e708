"""The commands and servers that a contestant calls: the times that they report of themselves, and how they fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, Protocol, runtime_checkable

from fairlap.errors import FairlapError


class OwnTimes(Protocol):
    """A time that each run of a called program has besides its wall time, such as the one that it reports."""

    @property
    def method(self) -> str:
        """What reported them, and of which benchmark."""

    def newest_ns(self, calls: int) -> Sequence[float]:
        """Of the last so many calls."""


@runtime_checkable
class OwnValues(OwnTimes, Protocol):
    """Values of each run that are no times, such as bytes, in their place."""

    @property
    def unit(self) -> str: ...


FailureCode = Literal["E_ARGUMENT_CHANGED", "E_BENCHMARK", "E_COMMAND", "E_OUTPUT", "E_REPORT", "E_SERVER", "E_STAGE"]


class ContestantFailed(FairlapError):
    """What a contestant calls failed: a command, a server or a function of the user's, not the code of this process.

    ``printed`` is the end of what it printed: a traceback of this process would explain nothing.
    """

    reported: ClassVar[FailureCode]
    printed: str = ""


class ServerFailed(ContestantFailed):
    """A server that a contestant calls is not there, broke off, or answered with something that is no answer."""

    code = reported = "E_SERVER"
