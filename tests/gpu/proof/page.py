"""A page from a file of figures: ``python -m tests.gpu.proof.page docs/gpu-proof/DEVICE.json``."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .record import FINISHED, Json, read

_BEGIN, _END = "<!-- runs: written by tests.gpu.proof.page -->", "<!-- end of runs -->"
_NO_RUN = "No run has been made yet, so there is no figure here."
_SHOWN_SEPARATELY = ("step",)


def page_of(document: Json, file_name: str) -> str:
    machine = document.get("machine", {})
    packages = ", ".join(f"{name} {version}" for name, version in document.get("packages", {}).items())
    beginning = [
        f"# The GPU proof on {_cell(document['device'])}",
        f"Written {document['written_at']} by `make gpu-proof`. [{file_name}]({file_name}) has every figure.",
        f"Driver {_cell(machine.get('driver', 'unknown'))}, CUDA {_cell(machine.get('cuda', 'unknown'))}, "
        f"{_cell(machine.get('cpu model', 'unknown processor'))}, {_cell(machine.get('cores', 'unknown'))} cores. "
        f"{_cell(packages)}.",
        "## Goals",
        _goals(document),
    ]
    return "\n\n".join([*beginning, *(_part(part) for part in document["parts"]), _disagreements(document)]) + "\n"


def write_page(file: Path) -> Path:
    document = read(file)
    if document is None or "parts" not in document:
        raise SystemExit(f"gpu-proof: {file} is not a file of the proof")
    page = file.with_suffix(".md")
    page.write_text(page_of(document, file.name))
    return page


def list_runs(folder: Path) -> None:
    """List every device that has a file in the index."""
    index = folder / "index.md"
    if not index.exists():
        return
    lines = []
    for file in sorted(folder.glob("*.json")):
        document = read(file)
        if document is None or "parts" not in document:
            continue
        goals = [goal for part in document["parts"] for goal in part["goals"]]
        reached = sum(goal["reached"] is True for goal in goals)
        link = f"[{document['device']}]({file.stem}.md), {document['written_at'][:10]}"
        lines.append(f"- {link}: {reached} of {len(goals)} goals reached")
    text = "\n".join(lines) or _NO_RUN
    written = index.read_text()
    index.write_text(re.sub(f"{_BEGIN}.*?{_END}", lambda _: f"{_BEGIN}\n\n{text}\n\n{_END}", written, flags=re.DOTALL))


def short_table(document: Json) -> str:
    lines = [f"{'part':<5}{'goal':<74}{'wanted':<14}{'figure':>14}  reached"]
    for part in document["parts"]:
        lines += [_goal_line(part["part"], goal) for goal in part["goals"]]
        if part["status"] != FINISHED:
            reason = part["reason"] or "it was not asked for"
            lines.append(f"{part['part']:<5}{part['title']}: {part['status']}: {reason}"[:220])
    return "\n".join(lines)


def reached_word(goal: Json) -> str:
    if goal["reached"] is None:
        return f"unknown: {goal['why']}"
    return ("yes" if goal["reached"] else "NO") + (f" ({goal['why']})" if goal["why"] else "")


def figure_text(goal: Json) -> str:
    return "" if goal["figure"] is None else f"{goal['figure']:.4g} {goal['unit']}".strip()


def _goal_line(number: int, goal: Json) -> str:
    return f"{number:<5}{goal['goal']:<74}{goal['wanted']:<14}{figure_text(goal):>14}  {reached_word(goal)}"[:240]


def _goals(document: Json) -> str:
    rows = [
        (part["part"], goal["goal"], goal["wanted"], figure_text(goal), reached_word(goal))
        for part in document["parts"]
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


def _disagreements(document: Json) -> str:
    pieces = ["## Where two methods differ by more than 2 %"]
    found = document.get("disagreements", [])
    if not found:
        return "\n\n".join([*pieces, "Nowhere, in what was measured."])
    pieces.append("Explanations are written by people into `disagreements` in the file.")
    rows = [
        (
            each["part"],
            each["case"],
            each["method"],
            each["figure_ns"],
            each["reference"],
            each["reference_ns"],
            f"{each['difference_share']:+.1%}",
            each["explanation"] or "not explained yet",
        )
        for each in found
    ]
    columns = ("part", "case", "method", "ns", "reference", "ns", "differs by", "because")
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
