"""The messages about planted mistakes. A worker imports this module before it says hello, so it must stay light."""

from __future__ import annotations

from typing import ClassVar

from fairlap.scenarios.asking import Ask, Reply


class MistakeSeen(Reply, frozen=True, tag="mistake_seen"):
    """What a user would have seen. ``raised`` is empty where nothing was raised."""

    version: str
    seconds: float = 0.0
    raised: str = ""  # the class of the exception
    message: str = ""  # the texts of the exception, and of those that caused it
    printed: str = ""  # the traceback, from the user's code on
    warned: str = ""  # Python's warnings, and what was printed to standard error, if nothing was raised
    right: bool = False  # it computed what the user wanted


class PlantMistake(Ask[MistakeSeen], frozen=True, tag="plant_mistake"):
    """Run one planted mistake in a framework that is loaded for nothing else. Only others and ``quit`` follow."""

    served_alone_by: ClassVar[str] = "fairlap.scenarios.mistakes.planting:seen"

    way: str  # the contestant, as ``ways`` has it
    mistake: str

    @property
    def text(self) -> str:
        return self.mistake
