"""A page from a file of figures: ``python -m tests.gpu.proof.page docs/gpu-proof/DEVICE.json``."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .record import FINISHED, LATER, Json, read
from .selection import selected

_BEGIN, _END = "<!-- runs: written by tests.gpu.proof.page -->", "<!-- end of runs -->"
_NO_RUN = "No run has been made yet, so there is no figure here."
_ON_PAGE = {
    "driver": "driver",
    "cuda": "CUDA",
    "gpu 0 memory": "memory",
    "gpu 0 clock": "clock up to",
    "gpu 0 power limit": "power limit",
    "cpu model": "processor",
    "cores": "cores",
    "distribution": "system",
    "python": "Python",
}


def page_of(document: Json, file_name: str) -> str:
    machine = document.get("machine", {})
    facts = ", ".join(f"{word} {_cell(machine[name])}" for name, word in _ON_PAGE.items() if name in machine)
    packages = ", ".join(f"{name} {version}" for name, version in document.get("packages", {}).items())
    beginning = [
        f"# The GPU proof on {_cell(document['device'])}",
        f"Measured by `make gpu-proof`, {document['written_at'][:10]}: the goals, and the figures that decide "
        f"something. [{file_name}]({file_name}) has every figure and the other facts of the machine; "
        "[the GPU proof](index.md) explains the parts.",
        f"Machine: {facts or 'unknown'}.",
        f"Packages: {_cell(packages) or 'none'}.",
        "## Goals",
        _goals(document),
        *(f"![Each goal, and how far its figure is from its limit]({name})" for name in document.get("pictures", ())),
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
    pieces.append(f"{part['status'].capitalize()}{took}.{_left_out(part)}")
    for name, rows in selected(part["tables"]).items():
        columns = list(dict.fromkeys(key for row in rows for key in row))
        pieces += [f"**{_cell(name)}**", _table(columns, [[row.get(column) for column in columns] for row in rows])]
    if part["notes"]:
        pieces.append("\n".join(f"- {_cell(note['step'])}: {_cell(note['text'])}" for note in part["notes"]))
    return "\n\n".join(pieces)


def _left_out(part: Json) -> str:
    """List the steps that were not done; those that only lacked time in one sentence."""
    left_out = part.get("left_out", [])
    if not left_out:
        return f" {_cell(part['reason'])}" if part["reason"] else ""
    late = [each["step"] for each in left_out if each["for_want_of_time"] and each["reason"] != LATER]
    later = [each["step"] for each in left_out if each["reason"] == LATER]
    others = [f"{each['step']}: {each['reason']}" for each in left_out if not each["for_want_of_time"]]
    sentences = [*others, *([f"No time was left for: {'; '.join(late)}"] if late else [])]
    sentences += [f"Left for another call: {'; '.join(later)}"] if later else []
    return "".join(f" {_cell(sentence)}." for sentence in sentences)


def _disagreements(document: Json) -> str:
    pieces = ["## Where two methods differ by more than 2 %"]
    found = document.get("disagreements", [])
    if not found:
        return "\n\n".join([*pieces, "Nowhere, in what was measured."])
    cases: dict[tuple[Any, ...], list[str]] = {}
    for each in found:
        key = (each["part"], each["method"], each["reference"], each["explanation"] or "not explained yet")
        cases.setdefault(key, []).append(f"{each['case']} {each['difference_share']:+.1%}")
    rows = [(part, method, reference, ", ".join(of), why) for (part, method, reference, why), of in cases.items()]
    return "\n\n".join([*pieces, _table(("part", "method", "reference", "differs by", "because"), rows)])


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    head = f"| {' | '.join(map(_cell, columns))} |\n| {' | '.join('---' for _ in columns)} |"
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
