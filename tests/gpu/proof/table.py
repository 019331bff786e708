"""The short table at the end: goal, figure, reached or not."""

from __future__ import annotations

from .record import FINISHED, Json


def short_table(told: Json) -> str:
    lines = [f"{'part':<5}{'goal':<74}{'wanted':<14}{'figure':>14}  reached"]
    for part in told["parts"]:
        lines += [_line(part["part"], goal) for goal in part["goals"]]
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


def _line(number: int, goal: Json) -> str:
    return f"{number:<5}{goal['goal']:<74}{goal['wanted']:<14}{figure_text(goal):>14}  {reached_word(goal)}"[:240]
