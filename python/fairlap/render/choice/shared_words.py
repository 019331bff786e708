"""What the tables and the chart of a choice both say."""

from __future__ import annotations

from collections.abc import Mapping

from fairlap.results.choice.choice import EXIT_STATUSES, Candidate, Choice
from fairlap.results.column_definitions.estimate import Estimate

_ANSWERS: Mapping[int, str] = {0: "Take", 1: "None", 3: "Undecided"}


def answer(choice: Choice) -> str:
    return f"{_ANSWERS[EXIT_STATUSES[choice.reason]]}: {choice.message}."


def how_to_read(choice: Choice) -> str:
    up = "Up" if choice.better == "higher" else "Down"
    return (
        f"{up} and to the left is better. Lines are 95 % intervals. Circles are on the front, diamonds may be on it, "
        f"crosses are dominated.{' Larger marks have larger files.' if sizes_differ(choice) else ''}"
    )


def sizes_differ(choice: Choice) -> bool:
    """Whether the files of all candidates that are drawn have sizes, and not all the same."""
    sizes = {each.file_bytes for each in drawable(choice)}
    return None not in sizes and len(sizes) > 1


def score_of(candidate: Candidate) -> Estimate | None:
    found = candidate.score
    return None if found is None else Estimate(found.value, found.low, found.high)


def drawable(choice: Choice) -> list[Candidate]:
    return [each for each in choice.candidates if each.front != "not compared" and each.time_per_item_ns is not None]
