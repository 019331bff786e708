"""Runs whose contestants answered items of three groups, of which int8 gets one wrong more often."""

from __future__ import annotations

import numpy as np
from fairlap.models.slices.groups import Grouped, changes_by_group, scores_by_group
from fairlap.models.slices.slice_scores import SliceScores
from fairlap.models.task_metrics import parts_of, score_of
from fairlap.race.run import Run
from fairlap.results.results import Results, results_of
from fairlap.scenarios.process_result import ProcessResult
from runs_of_precisions import planned, shown

NAMES = ("old", "young", "unknown")
ITEMS, CLASSES = 900, 4
_DRAWN = np.random.default_rng(7)
GROUPS = _DRAWN.choice(3, size=ITEMS).astype(np.int32)
LABELS = _DRAWN.integers(0, CLASSES, ITEMS)
BEST = np.where(_DRAWN.random(ITEMS) < 0.1, (LABELS + 1) % CLASSES, LABELS)
IN_INT8 = np.where((GROUPS == 1) & (_DRAWN.random(ITEMS) < 0.3), (BEST + 1) % CLASSES, BEST)


def grouped_run(metrics: tuple[str, ...] = ("top1", "brier"), **options: object) -> Run:
    """Every contestant answers alike in one precision."""
    plan = planned(precision=("fp32", "int8"), **options)
    run = shown(plan).run
    earlier: dict[tuple[str, str], dict[str, Grouped]] = {}
    first: dict[tuple[str, str], ProcessResult] = {}
    for process in run.processes:
        first.setdefault((process.contestant, process.work_id), process)
    for key, process in first.items():
        own = answers(metrics, in_int8="int8" in f"{process.contestant} {_precision(run, process)}")
        changes = [
            change
            for (contestant, work_id), other in earlier.items()
            for metric in metrics
            for change in changes_by_group(own[metric], other[metric], contestant, work_id)
        ]
        process.groups = SliceScores({metric: scores_by_group(own[metric]) for metric in metrics}, changes)
        process.scores = {metric: score_of(metric, [own[metric].parts]) for metric in metrics}
        earlier[key] = own
    return run


def answers(metrics: tuple[str, ...], *, in_int8: bool) -> dict[str, Grouped]:
    scores = np.eye(CLASSES)[IN_INT8 if in_int8 else BEST]
    return {metric: Grouped(metric, parts_of(metric, [scores], LABELS), GROUPS, NAMES) for metric in metrics}


def _precision(run: Run, process: ProcessResult) -> str:
    work = next(each for each in run.plan.works if each.id == process.work_id)
    return "" if work.together else work.precision


def grouped_results(baseline: str = "", **options: object) -> Results:
    return results_of(grouped_run(**options), "r", baseline=baseline)  # type: ignore[arg-type]
