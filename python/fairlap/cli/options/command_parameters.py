"""Commands over values of parameters: ``--command sort='sort --parallel={threads} f' --parameter threads=1,2,4``.

Each combination of values becomes a contestant, named after the values.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.request.commands import CODE, Command

_MOST = 50  # contestants of one race
_NO_NAME = re.compile(r"[^A-Za-z0-9_.]+")


def with_parameters(given: Iterable[tuple[str, Command]], parameters: Iterable[str]) -> list[tuple[str, Command]]:
    """Put values in the place of ``{NAME}``; commands that name no parameter stay as they are."""
    commands = list(given)
    values = _values_of(parameters)
    for name in values:
        if not any(_place(name) in command.run for _, command in commands):
            raise InvalidRequest(f"no command has {_place(name)}, the place of --parameter {name}", code=CODE)
    found = [each for name, command in commands for each in _combinations(name, command, values)]
    if values and len(found) > _MOST:
        raise InvalidRequest(
            f"{len(found)} commands are more than one race takes ({_MOST}); give fewer values", code=CODE
        )
    return found


def _combinations(name: str, command: Command, values: Mapping[str, list[str]]) -> Iterable[tuple[str, Command]]:
    own = [each for each in values if _place(each) in command.run]
    if math.prod(len(values[each]) for each in own) > _MOST:
        raise InvalidRequest(f"{name}: the values make more than {_MOST} commands; give fewer", code=CODE)
    for chosen in itertools.product(*(values[each] for each in own)):
        run, parts = command.run, [name]
        for parameter, value in zip(own, chosen, strict=True):
            run = run.replace(_place(parameter), value)
            parts.append(f"{parameter}-{_NO_NAME.sub('-', value).strip('-')}")
        yield ".".join(parts), msgspec.structs.replace(command, run=run)


def _values_of(parameters: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text in parameters:
        name, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not name.isidentifier() or name == "report":
            raise InvalidRequest(
                f"{text!r} is not a parameter such as threads=1,2,4 or level=1..9; its name is letters, and the "
                "command has {threads}",
                code=CODE,
            )
        if name in found:
            raise InvalidRequest(f"parameter {name} is given twice; list its values with commas", code=CODE)
        found[name] = [value for part in values.split(",") for value in _listed(name, part.strip())]
        if "" in found[name] or len(set(found[name])) < len(found[name]):
            raise InvalidRequest(f"{text!r} lacks a value, or has one twice", code=CODE)
    return found


def _listed(name: str, part: str) -> list[str]:
    """Leave a text as it is, and list the numbers of a range as an axis does."""
    if ".." not in part or not part[:1].isdigit():
        return [part]
    from fairlap.scenarios.callables.axes.axis import axis_in

    return [str(value) for value in axis_in(f"{name}={part}" + ("" if ":" in part else ":+1")).values]


def _place(name: str) -> str:
    return "{" + name + "}"
