"""Options that several commands take together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

_Command = TypeVar("_Command", bound=Callable[..., Any])


def grouped(options: Sequence[Callable[[Any], Any]]) -> Callable[[_Command], _Command]:
    """Make one decorator of them, which adds them in their order."""

    def added(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return added
