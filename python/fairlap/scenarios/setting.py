"""A setting of a scenario: an option of ``compare``, and a key of ``scenario_settings`` in a request file.

The command line imports this module before it knows what is asked, so it must stay light.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

from fairlap.errors import InvalidRequest

E_SETTING = "E_SCENARIO_SETTING"
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Setting(Generic[_Value]):
    """Plans keep its text."""

    name: str  # as an option, such as "pause"
    meaning: str  # a line of help
    read: Callable[[str], _Value]  # raises ValueError
    metavar: str = "VALUE"

    def value_in(self, given: Mapping[str, str]) -> _Value | None:
        """None where it was not given."""
        text = given.get(self.name)
        if text is None:
            return None
        try:
            return self.read(text)
        except (ValueError, InvalidRequest) as error:
            raise InvalidRequest(f"--{self.name} {text}: {error}", code=E_SETTING) from None


def built_in_settings() -> tuple[Setting[Any], ...]:
    """List ``SETTINGS`` of each built-in scenario's ``settings.py``, without importing what else these need."""
    folders = sorted(each.parent.name for each in Path(__file__).parent.glob("*/settings.py"))
    modules = [import_module(f"fairlap.scenarios.{folder}.settings") for folder in folders]
    return tuple(setting for module in modules for setting in module.SETTINGS)
