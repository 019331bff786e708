"""A page from a file of figures: ``python -m tests.gpu.proof.page docs/gpu-proof/DEVICE.json``."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .record import Json, read
from .table import figure_text, reached_word

_BEGIN, _END = "<!-- runs: written by tests.gpu.proof.page -->", "<!-- end of runs -->"
_NO_RUN = "No run has been made yet, so there is no figure here."
_SHOWN_SEPARATELY = ("step",)


def page_of(told: Json, file_name: str) -> str:
    machine = told.get("machine", {})
    packages = ", ".join(f"{name} {version}" for name, version in told.get("packages", {}).items())
    beginning = [
        f"# The GPU proof on {_cell(told['device'])}",
        f"Written {told['written_at']} by `make gpu-proof` from [{file_name}]({file_name}), which holds every figure.",
        f"Driver {_cell(machine.get('driver', 'unknown'))}, CUDA {_cell(machine.get('cuda', 'unknown'))}, "
        f"{_cell(machine.get('cpu model', 'unknown processor'))}, {_cell(machine.get('cores', 'unknown'))} cores. "
        f"{_cell(packages)}.",
        "## Goals",
        _goals(told),
    ]
    return "\n\n".join([*beginning, *(_part(part) for part in told["parts"]), _disagreements(told)]) + "\n"


def write_page(file: Path) -> Path:
    told = read(file)
    if told is None or "parts" not in told:
        raise SystemExit(f"gpu-proof: {file} is not a file of the proof")
    page = file.with_suffix(".md")
    page.write_text(page_of(told, file.name))
    return page


def list_runs(folder: Path) -> None:
    """The index names every device that there is a file of, and says so when there is none."""
    index = folder / "index.md"
    if not index.exists():
        return
    lines = []
    for file in sorted(folder.glob("*.json")):
        told = read(file)
        if told is None or "parts" not in told:
            continue
        goals = [goal for part in told["parts"] for goal in part["goals"]]
        reached = sum(goal["reached"] is True for goal in goals)
        lines.append(
            f"- [{told['device']}]({file.stem}.md), {told['written_at'][:10]}: {reached} of {len(goals)} goals reached"
        )
    text = "\n".join(lines) or _NO_RUN
    written = index.read_text()
    index.write_text(re.sub(f"{_BEGIN}.*?{_END}", lambda _: f"{_BEGIN}\n\n{text}\n\n{_END}", written, flags=re.DOTALL))


def _goals(told: Json) -> str:
    rows = [
        (part["part"], goal["goal"], goal["wanted"], figure_text(goal), reached_word(goal))
        for part in told["parts"]
        for goal in part["goals"]
    ]
    return _table(("part", "goal", "wanted", "figure", "reached"), rows) if rows else "No goal was measured."


def _part(part: Json) -> str:
    pieces = [f"## Part {part['part']}: {part['title']}"]
    took = f" in {part['seconds']:.0f} s" if "seconds" in part else ""
    pieces.append(f"{part['status'].capitalize()}{took}." + (f" {_cell(part['reason'])}" if part["reason"] else ""))
    for name, rows in part["tables"].items():
        columns = list(dict.fromkeys(key for row in rows for key in row if key not in _SHOWN_SEPARATELY))
        pieces += [f"**{name}**", _table(columns, [[row.get(column) for column in columns] for row in rows])]
    if part["notes"]:
        pieces.append("\n".join(f"- {_cell(note['step'])}: {_cell(note['text'])}" for note in part["notes"]))
    return "\n\n".join(pieces)


def _disagreements(told: Json) -> str:
    pieces = ["## Where two methods differ by more than 2 %"]
    found = told.get("disagreements", [])
    if not found:
        return "\n\n".join([*pieces, "Nowhere, in what was measured."])
    pieces.append("The words come from `disagreements` in the file; a place without words is still to be explained.")
    rows = [
        (
            each["part"],
            each["case"],
            each["method"],
            each["figure_ns"],
            each["beside"],
            each["beside_ns"],
            f"{each['off_by_share']:+.1%}",
            each["explanation"] or "not explained yet",
        )
        for each in found
    ]
    columns = ("part", "case", "method", "ns", "beside", "ns", "differs by", "because")
    return "\n\n".join([*pieces, _table(columns, rows)])


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    head = f"| {' | '.join(columns)} |\n| {' | '.join('---' for _ in columns)} |"
    return "\n".join([head, *(f"| {' | '.join(_cell(value) for value in row)} |" for row in rows)])


def _cell(value: Any) -> str:
    """Text from a device or a framework is only ever text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    text = " ".join(str(value).split())
    return re.sub(r"([|*_`\[\]\\])", r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;"))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.proof.page", description=__doc__)
    parser.add_argument("file", type=Path)
    file = parser.parse_args(arguments).file
    print(write_page(file))
    list_runs(file.parent)


if __name__ == "__main__":
    main(sys.argv[1:])
