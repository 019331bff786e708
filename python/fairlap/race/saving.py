"""A race as one JSON file: the plan that was run, every lap, and what they show."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from fairlap import __version__, verdict
from fairlap.errors import WrongRequest
from fairlap.race.exact_json import exact_json, read_exact_json
from fairlap.race.laps import Lap
from fairlap.race.other_figures import OtherFigure, other_figures
from fairlap.race.plan import Plan
from fairlap.race.results import Contender, Heat, Results

RESULTS_FORMAT = 1


class SavedRun(msgspec.Struct):
    """What happened, without what it shows: verdicts are drawn anew from the laps."""

    plan: Plan
    laps: list[Lap]
    machine: dict[str, str]
    wall_s: dict[str, float]
    began_at: str = ""  # in UTC, ISO 8601; empty in runs saved before it was kept
    ended_early: str = ""  # why; empty when every block of the plan ran
    fairlap: str = str(__version__)
    format: int = RESULTS_FORMAT


def save_run(path: Path, run: SavedRun, results: Results | None = None) -> None:
    """Written beside and renamed, so that a full disk or a killed process leaves the last whole file.

    While a race runs there are no results yet; what has ended is saved all the same.
    """
    document = msgspec.structs.asdict(run) | (_shown(run.plan, results) if results is not None else {})
    text = msgspec.json.format(exact_json(document), indent=1)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(text)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def load_run(path: Path) -> SavedRun:
    """Read a saved run; whatever is wrong with it is said by its place in the file."""
    try:
        run = read_exact_json(path.read_bytes(), SavedRun)
    except OSError as error:
        raise WrongRequest(f"the run {path} cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise WrongRequest(f"{path} is not a saved run: {error}") from None
    if run.format != RESULTS_FORMAT:
        raise WrongRequest(f"{path} has format {run.format}; this fairlap reads {RESULTS_FORMAT}")
    return run


def _shown(plan: Plan, results: Results) -> dict[str, Any]:
    return {
        "heats": [_heat(plan, heat) for heat in results.heats],
        "order_differs": {work.label: results.order_differs(work.label) for work in plan.works},
    }


def _heat(plan: Plan, heat: Heat) -> dict[str, Any]:
    return {
        "work": heat.work,
        "conditions": heat.conditions,
        "rows": [_row(row) for row in heat.rows],
        "blocks": {"kept": heat.blocks.kept, "dropped": heat.blocks.dropped, "told": heat.blocks.told or None},
        "comparisons": [_comparison(each) for each in heat.comparisons],
        "expected_beside": None if heat.table is None else _expected_beside(heat.table),
        "other_figures": [
            {
                "metric": other.metric.name,
                "comparisons": [_comparison(each) for each in other.comparisons],
                "without": other.without,
            }
            for other in _other_figures(plan, heat)
        ],
        "why_no_verdict": heat.why_no_verdict or None,
    }


def _other_figures(plan: Plan, heat: Heat) -> tuple[OtherFigure, ...]:
    work = next(work for work in plan.works if work.label == heat.work)
    return other_figures(work, heat.compared) if heat.table is not None else ()


def _comparison(each: verdict.Comparison) -> dict[str, Any]:
    return {
        "a": each.a,
        "b": each.b,
        "verdict": each.verdict.value,
        "ratio": each.ratio,
        "interval": [each.interval.low, each.interval.high],
        "blocks": each.blocks,
        "p_adjusted": each.p_adjusted,
        "detectable_effect": each.detectable_effect,
        "sentence": verdict.sentence(each),
        "doubts": [str(doubt) for doubt in each.doubts],
    }


def _expected_beside(table: verdict.BlockTable) -> dict[str, Any]:
    """What many readers look for. Never the verdict."""
    return {"means": verdict.means_and_spreads(table), "welch": verdict.welch(table)}


def _row(row: Contender) -> dict[str, Any]:
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
