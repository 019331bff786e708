"""What github-action-benchmark keeps: ``data.js``, which assigns JSON to a variable, or the same JSON as a file.

The script is not run: its assignment is blanked, and the rest has to be JSON.
"""

from __future__ import annotations

import re
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from fairlap.history.foreign.file_reading import Files, at_milliseconds, text_of
from fairlap.store.foreign_points import ForeignPoint

ASSIGNMENT = re.compile(rb"(\xef\xbb\xbf)?\s*window\.BENCHMARK_DATA\s*=")
_PLUS_MINUS = re.compile(r"\s*(?:±|\+/-|\+-)\s*(?P<reach>\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?)\s*(?P<percent>%?)\s*", re.I)
_INTERVAL = "± as the file has it"


class _Commit(msgspec.Struct):
    id: str


class _Benchmark(msgspec.Struct):
    name: str
    value: float
    unit: str = ""
    range: str | float | None = None


class _Measured(msgspec.Struct):
    commit: _Commit
    date: float
    benches: list[_Benchmark]
    tool: str = ""


class _Data(msgspec.Struct):
    entries: dict[str, list[_Measured]]
    repoUrl: str = ""  # noqa: N815 (as the file has it)


def is_action_data(document: dict[str, Any]) -> bool:
    return isinstance(document.get("entries"), dict) and bool({"lastUpdate", "repoUrl"} & document.keys())


def without_assignment(content: bytes) -> bytes:
    """Leave the JSON of the script at its place, so that an error in it is reported where an editor shows it."""
    begin = ASSIGNMENT.match(content)
    if begin is None:
        return content
    blank = re.sub(rb"[^\n\r]", b" ", content[begin.end(1) if begin[1] else 0 : begin.end()])
    return blank + content[begin.end() :].rstrip().removesuffix(b";")


def action_points(path: Path, files: Files, document: dict[str, Any], project: str) -> list[ForeignPoint]:
    data = files.converted(path, document, _Data)
    project = project or data.repoUrl
    points: list[ForeignPoint] = []
    with files.understood(path):
        for suite, measured in data.entries.items():
            for each in measured:
                points += [_point(found, each, suite, project) for found in each.benches if isfinite(found.value)]
                files.require_few(points)
    return points


def _point(found: _Benchmark, measured: _Measured, suite: str, project: str) -> ForeignPoint:
    reach = _reach(found)
    return ForeignPoint(
        tool="github-action-benchmark",
        project=text_of(project),
        benchmark=text_of(f"{suite}: {found.name}"),
        parameters={},
        machine="",
        environment=text_of(measured.tool),
        commit=text_of(measured.commit.id),
        branch="",
        at=at_milliseconds(measured.date),
        unit=text_of(found.unit),
        value=found.value,
        low=None if reach is None else found.value - reach,
        high=None if reach is None else found.value + reach,
        interval="" if reach is None else _INTERVAL,
    )


def _reach(found: _Benchmark) -> float | None:
    """Read ``± 12``, ``+/- 1,200`` or ``± 2%``; other texts, such as a standard deviation, are no interval."""
    match = _PLUS_MINUS.fullmatch(str(found.range or ""))
    if match is None:
        return None
    reach = float(match["reach"].replace(",", ""))
    return abs(found.value) * reach / 100 if match["percent"] else reach
