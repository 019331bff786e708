"""The planted mistakes, with what is known of each. Reading them imports no framework."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from fairlap.errors import InvalidRequest
from fairlap.scenarios.mistakes import planted
from fairlap.scenarios.mistakes.ways import Way
from fairlap.suggestions import did_you_mean

KINDS = ("shapes", "values", "setup", "gradients", "tracing")
CONTROL = "control"
_MARK = "# mistake"

Shape = tuple[int, ...]
Side = str | Shape | Sequence[str | Shape]
"""A shape, words that name it by ``|``, or several of these, any of which does."""


class Mistake:
    """One planted file."""

    def __init__(self, kind: str, module: ModuleType) -> None:
        self.kind = kind
        self.name = module.__name__.rpartition(".")[2]
        self.what = (module.__doc__ or "").strip()
        self.operators: tuple[str, ...] = module.OPERATORS
        self.clash: tuple[int, ...] = getattr(module, "CLASH", ())
        self.meant: Any = getattr(module, "MEANT", None)
        self.absent: Mapping[str, str] = getattr(module, "ABSENT", {})
        self._module = module

    @property
    def file(self) -> str:
        return str(self._module.__file__)

    def function(self, way: Way) -> Callable[..., Any] | None:
        found = (getattr(self._module, name, None) for name in way.functions)
        return next((each for each in found if each is not None), None)

    def why_absent(self, way_name: str, way: Way) -> str:
        """Say why there is no such mistake in a contestant; empty where there is one."""
        if way_name in self.absent:
            return self.absent[way_name]
        if self.function(way) is not None:
            return ""
        return next(self.absent[name] for name in way.functions if name in self.absent)

    def marked_lines(self, way: Way) -> tuple[int, ...]:
        """Return those on which the user makes the mistake."""
        function = self.function(way)
        if function is None:
            return ()
        lines, first = inspect.getsourcelines(function)
        return tuple(first + place for place, line in enumerate(lines) if line.rstrip().endswith(_MARK))

    def sides(self, way: Way) -> tuple[Side, ...]:
        return tuple(self._of_function("SIDES", way) or ())

    def part(self, way: Way) -> str:
        """Name the part as the user did; empty where it has no name."""
        return str(self._of_function("PART", way) or "")

    def _of_function(self, name: str, way: Way) -> Any:
        held = getattr(self._module, name, None)
        if not isinstance(held, dict):
            return held
        return next((held[each] for each in (*way.functions, "") if each in held), None)


@cache
def mistakes() -> Mapping[str, Mistake]:
    """All, by name and in order of their kinds."""
    found = {}
    for kind in KINDS:
        package = import_module(f"{planted.__name__}.{kind}")
        for _, name, _ in pkgutil.iter_modules(package.__path__):
            found[name] = Mistake(kind, import_module(f"{package.__name__}.{name}"))
    return found


def mistake_named(name: str) -> Mistake:
    """Also the control, which is no mistake."""
    if name == CONTROL:
        return Mistake("", import_module(f"{planted.__name__}.{CONTROL}"))
    return mistakes()[name]


def chosen(patterns: Sequence[str]) -> tuple[str, ...]:
    """Return those whose name or kind is given; all without any."""
    known = mistakes()
    for pattern in patterns:
        if pattern not in known and pattern not in KINDS:
            hint = did_you_mean(pattern, (*known, *KINDS)) or f"kinds are {', '.join(KINDS)}"
            raise InvalidRequest(f"no mistake or kind named {pattern!r}; {hint}")
    return tuple(name for name, each in known.items() if not patterns or {name, each.kind} & {*patterns})
