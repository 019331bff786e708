"""One picture of a call: each goal, and how far its figure is from what was wanted."""

from __future__ import annotations

import math
import re
from html import escape
from pathlib import Path

from .calls import Call
from .page import figure_text
from .record import Json

_ROW, _TOP, _LEFT, _WIDTH, _RIGHT = 22, 64, 620, 280, 150  # pixels
_DECADES = 2.0  # on either side of the limit; what is farther away is at the edge
_COLOURS = {True: "#1a7f37", False: "#b3261e", None: "#8a8a8a"}
_WORDS = {True: "reached", False: "missed", None: "unknown"}
_LIMIT = re.compile(r"^(?:<=|>=|\+-)\s*([0-9.]+(?:e-?[0-9]+)?)\s*(%?)")


def write_picture(document: Json, call: Call, file: Path) -> Path:
    """Write it beside the device's file, such as ``nvidia-h200-call-1.svg``."""
    picture = file.with_name(f"{file.stem}-call-{call.number}.svg")
    picture.write_text(picture_of(document, call))
    return picture


def picture_of(document: Json, call: Call) -> str:
    numbers = {piece.part.number for piece in call.pieces}
    goals = [goal for part in document["parts"] if part["part"] in numbers for goal in part["goals"]]
    reached = sum(goal["reached"] is True for goal in goals)
    title = f"{document['device']}, call {call.number}: {reached} of {len(goals)} goals reached"
    width, height = _LEFT + _WIDTH + _RIGHT, _TOP + _ROW * max(1, len(goals)) + 16
    middle = _LEFT + _WIDTH / 2
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12" role="img">',
        f"<title>{escape(title)}</title>",
        f"<desc>{escape(call.title)}</desc>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="24" font-size="16">{escape(title)}</text>',
        f'<text x="{_LEFT}" y="50">a hundredth</text>',
        f'<text x="{middle}" y="50" text-anchor="middle">the limit</text>',
        f'<text x="{_LEFT + _WIDTH}" y="50" text-anchor="end">a hundred times</text>',
        f'<line x1="{middle}" x2="{middle}" y1="{_TOP - 8}" y2="{height - 12}" stroke="#444444"/>',
    ]
    lines += [line for row, goal in enumerate(goals) for line in _goal_lines(goal, _TOP + _ROW * row + 8)]
    if not goals:
        lines.append(f'<text x="12" y="{_TOP + 8}">No goal was measured.</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def _goal_lines(goal: Json, y: float) -> list[str]:
    colour, word = _COLOURS[goal["reached"]], _WORDS[goal["reached"]]
    place = place_of(goal)
    text = goal["goal"] if len(goal["goal"]) <= 88 else f"{goal['goal'][:87]}…"
    lines = [
        f'<circle cx="16" cy="{y - 4}" r="5" fill="{colour}"><title>{word}</title></circle>',
        f'<text x="30" y="{y}">{escape(text)}</text>',
        f'<text x="{_LEFT + _WIDTH + 10}" y="{y}" fill="{colour}">{escape(figure_text(goal) or word)}</text>',
    ]
    if place is not None:
        lines.append(f'<circle cx="{_LEFT + _WIDTH * place:.1f}" cy="{y - 4}" r="4" fill="{colour}"/>')
    return lines


def place_of(goal: Json) -> float | None:
    """Return the place of a figure between 0 and 1, with its limit at 0.5; None without a figure or a single limit."""
    found = _LIMIT.match(goal["wanted"])
    if found is None or goal["figure"] is None:
        return None
    limit = float(found.group(1)) / (100 if found.group(2) else 1)
    if limit <= 0:
        return None
    decades = math.log10(max(abs(goal["figure"]) / limit, 10**-_DECADES))
    return 0.5 + min(decades, _DECADES) / (2 * _DECADES)
