"""A suite: races that are declared once, with what they share, and run as a whole.

A race of a suite is a request with a name and tags. Or it has one ``call`` or ``command``, which races between two
sides, such as a base and a change, that are given when the suite is run. ``python -m fairlap.request.suite`` writes the
JSON schema.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from fairlap.errors import FairlapError, InvalidRequest
from fairlap.machine.files.atomic_files import write_output
from fairlap.machine.files.regular_file import content_of
from fairlap.request.race_request import RaceRequest, schema_text
from fairlap.request.toml_file import converted, parsed_toml
from fairlap.suggestions import did_you_mean

E_SUITE = "E_SUITE"
FILE = Path("docs/reference/suite.schema.json")
_OF_ONE_RACE = ("output", "keep_weights", "trace")  # files that races would write over one another
_SHARD = re.compile(r"(\d{1,4})/(\d{1,4})")

Kind = Literal["contestants", "two sides"]


def _about(meaning: str) -> msgspec.Meta:
    return msgspec.Meta(description=meaning)


class RaceOfSuite(RaceRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request with a name; or a callable or a program that races between two sides."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=100, description="Its name, which no other race has.")]
    tags: Annotated[tuple[str, ...], _about("By which --tag selects it.")] = ()
    call: Annotated[
        str, _about('A Python callable that races between two sides, imported from both: "package.module:function".')
    ] = ""
    command: Annotated[str, _about('A program that races between two sides, run in both: "./bench --size 10".')] = ""

    @property
    def kind(self) -> Kind:
        return "two sides" if self.call or self.command else "contestants"

    @property
    def what(self) -> str:
        """What it races, for a list."""
        return self.call or self.command or ", ".join([*self.models, *self.commands])

    def is_named(self, only: str) -> bool:
        """Whether it has this name, or one that the regular expression describes."""
        return self.name == only or _pattern(only).fullmatch(self.name) is not None


class FoundRace(RaceOfSuite, frozen=True, kw_only=True):
    """A benchmark that was written for another tool, which races between two sides as it is."""

    tool: str
    suite: str  # its folder or file
    member: str = ""  # its name in the tool, without a command
    module: str = ""
    root: str = ""
    broken: str = ""  # why it cannot be raced

    @property
    def kind(self) -> Kind:
        return "two sides"

    @property
    def what(self) -> str:
        return f"broken: {self.broken}" if self.broken else self.command or f"{self.tool}, {self.suite}"

    def is_named(self, only: str) -> bool:
        """Whether a part of its name is this, as with the tools' own options."""
        return only in self.name or _pattern(only).search(self.name) is not None


class SuiteFile(RaceRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields at the top are those of every race that does not have its own."""

    race: Annotated[tuple[RaceOfSuite, ...], msgspec.Meta(min_length=1, description="The races, each [[race]].")]


class LeftOut(msgspec.Struct, frozen=True):
    """A race that was declared and not run."""

    name: str
    why: str


class Shard(msgspec.Struct, frozen=True):
    """Of all races that are selected, every ``of``-th from the ``number``-th on, from 1."""

    number: int
    of: int

    @property
    def text(self) -> str:
        return f"{self.number}/{self.of}"


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which races of a suite are run; without tags and names, all of the kind."""

    tags: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    shard: Shard | None = None


IN_ANOTHER_SHARD = "it is in another shard"


@dataclass(frozen=True)
class Suite:
    path: Path
    sha256: str
    races: tuple[RaceOfSuite, ...]

    def selected(self, selection: Selection, kind: Kind | None) -> tuple[RaceOfSuite, ...]:
        """List the races of all shards together, in the order of the file; without a kind, of both."""
        unknown = [only for only in selection.only if not any(each.is_named(only) for each in self.races)]
        _require_known("--only", unknown, [each.name for each in self.races])
        _require_known("--tag", selection.tags, [tag for each in self.races for tag in each.tags])
        found = tuple(each for each in self.races if not _why_not(each, selection, kind))
        if not found:
            raise InvalidRequest(f"{self.path}: no race is left: {self._why_none(selection, kind)}", code=E_SUITE)
        return found

    def _why_none(self, selection: Selection, kind: Kind | None) -> str:
        """Give the reasons of the race that has the fewest, of those that --only names."""
        named = [each for each in self.races if not selection.only or any(map(each.is_named, selection.only))]
        whys = {each.name: list(_refusals(each, selection, kind)) for each in named}
        nearest = min(whys, key=lambda name: len(whys[name]))
        return f"{nearest!r}: {' and '.join(whys[nearest])}"

    def left_out(self, selection: Selection, kind: Kind | None) -> tuple[LeftOut, ...]:
        whys = ((each.name, _why_not(each, selection, kind)) for each in self.races)
        return tuple(LeftOut(name, why) for name, why in whys if why)


def _why_not(race: RaceOfSuite, selection: Selection, kind: Kind | None) -> str:
    return next(_refusals(race, selection, kind), "")


def _refusals(race: RaceOfSuite, selection: Selection, kind: Kind | None) -> Iterator[str]:
    if kind is not None and race.kind != kind:
        yield (
            "it races between two sides; give --base and --change"
            if race.kind == "two sides"
            else "it does not race between two sides"
        )
    if selection.only and not any(map(race.is_named, selection.only)):
        yield f"not named by --only {','.join(selection.only)}"
    if selection.tags and not set(selection.tags) & set(race.tags):
        yield f"not tagged {' or '.join(selection.tags)}"


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error:  # a name, such as one with an open bracket
        return re.compile(re.escape(text))


def of_shard(races: Sequence[RaceOfSuite], shard: Shard | None) -> tuple[RaceOfSuite, ...]:
    """Every so many-th of the selected races; all without a shard."""
    return tuple(races) if shard is None else tuple(races[shard.number - 1 :: shard.of])


def shard_in(text: str) -> Shard:
    """Parse ``2/5``."""
    match = _SHARD.fullmatch(text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise InvalidRequest(f"{text!r} is not a shard such as 2/5, the second of five", code=E_SUITE)
    return Shard(int(match[1]), int(match[2]))


def read_suite(path: Path) -> Suite:
    return suite_from(path, parsed_toml(path, "the suite"))


def suite_from(path: Path, values: dict[str, Any]) -> Suite:
    """Take what was parsed from this file; each race gets what it leaves out from the top of the file."""
    file = converted(path, values, SuiteFile)
    if given := next((name for name in _OF_ONE_RACE if getattr(file, name)), ""):
        raise InvalidRequest(f"{path}: {given} is for a single race; write it below its [[race]]", code=E_SUITE)
    shared = {name: value for name, value in values.items() if name != "race"}
    races = tuple(converted(path, {**shared, **each}, RaceOfSuite) for each in values["race"])
    for race, own in zip(races, values["race"], strict=True):
        _require_whole(path, race, own)
    names = [race.name for race in races]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise InvalidRequest(f"{path}: two races are named {twice!r}; rename one of them", code=E_SUITE)
    return Suite(path, hashlib.sha256(content_of(path)).hexdigest(), races)


def _require_whole(path: Path, race: RaceOfSuite, own: dict[str, object]) -> None:
    if race.trust:
        raise InvalidRequest(
            f"{path}: a file cannot allow code to run; leave trust out, and add --trust on the command line",
            code="E_SOURCE_TRUST",
        )
    ways = [name for name in ("call", "command") if own.get(name)] + ["models"] * bool(
        {"models", "commands"} & set(own)
    )
    if len(ways) > 1 or not (ways or race.models):
        raise InvalidRequest(f"{path}: {race.name}: give one of call, command, models and commands", code=E_SUITE)
    if race.kind == "contestants" and not (race.contestants or race.commands):
        raise InvalidRequest(f"{path}: {race.name}: contestants is missing", code=E_SUITE)
    if race.call and not race.call.replace(":", ".").strip(".").count("."):
        raise InvalidRequest(
            f"{path}: {race.name}: call = {race.call!r} names no module; write package.module:function", code=E_SUITE
        )
    wrong = {"call": ("reported", "same_output"), "command": ("inputs", "reference")}
    for way, names in wrong.items():
        if given := next((name for name in names if way in ways and own.get(name)), ""):
            raise InvalidRequest(f"{path}: {race.name}: {given} is not for {way}; leave it out", code=E_SUITE)


def _require_known(option: str, given: Sequence[str], known: Sequence[str]) -> None:
    for each in given:
        if each not in known:
            has = f"it has {', '.join(list(dict.fromkeys(known))[:5])}" if known else ""
            hint = did_you_mean(each, known) or has
            raise InvalidRequest(f"{option}: the suite has no {each!r}{f'; {hint}' if hint else ''}", code=E_SUITE)


if __name__ == "__main__":
    try:
        write_output(FILE, schema_text(SuiteFile).encode())
    except FairlapError as error:
        sys.exit(f"{error}; run it from the top of the repository")
