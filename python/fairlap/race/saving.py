"""A race as one JSON file: the plan that was run, every lap, and what they show."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from fairlap import __version__
from fairlap.race.laps import Lap
from fairlap.race.plan import Plan
from fairlap.race.results import Row, results_of

if TYPE_CHECKING:
    from fairlap.race.race import Race

RESULTS_FORMAT = 1


def save_results(path: Path, race: Race) -> None:
    """Written beside and renamed, so that a full disk or a killed process leaves the last whole file."""
    text = msgspec.json.format(msgspec.json.encode(as_document(race.plan, race.laps, race.shares())), indent=1)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(text)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def as_document(plan: Plan, laps: list[Lap], shares: dict[str, float]) -> dict[str, Any]:
    results = results_of(plan, laps)
    return {
        "format": RESULTS_FORMAT,
        "fairlap": __version__,
        "plan": plan,
        "laps": laps,
        "wall_s": shares,
        "heats": [
            {
                "work": heat.work,
                "conditions": heat.conditions,
                "rows": [_row(row) for row in heat.rows],
                "comparisons": [
                    {
                        "a": each.a,
                        "b": each.b,
                        "verdict": each.verdict.value,
                        "ratio": each.ratio,
                        "interval": [each.interval.low, each.interval.high],
                        "blocks": each.blocks,
                        "detectable_effect": each.detectable_effect,
                        "doubts": [str(doubt) for doubt in each.doubts],
                    }
                    for each in heat.comparisons
                ],
                "why_no_verdict": heat.why_no_verdict or None,
            }
            for heat in results.heats
        ],
        "order_differs": {work.label: results.order_differs(work.label) for work in plan.works},
    }


def _row(row: Row) -> dict[str, Any]:
    modes = row.figure.modes.modes if row.figure is not None else ()
    return {
        "contestant": row.contestant,
        "ranked": row.ranked,
        "trouble": row.trouble or None,
        "median_ns": row.median_ns if row.finished else None,
        "interval_ns": None if row.figure is None or row.figure.value is None else [row.figure.low, row.figure.high],
        "modes": [{"ns": mode.value, "share": mode.share} for mode in modes] if len(modes) > 1 else [],
        "causes": [{"of": cause.covariate, "typical": cause.typical, "remedy": cause.remedy} for cause in row.causes],
        "worst_relative_error": row.worst_relative_error,
    }
