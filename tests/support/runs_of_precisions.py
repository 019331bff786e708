"""Races over precisions: their plans, and runs of them with made-up times and errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlap.models.task_metrics import Score
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.run import Run
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import Precision
from fairlap.results.results import Results, results_of
from fairlap.scenarios.process_result import AnswerError, ProcessResult
from runs_for_rows import a_process

ERRORS: dict[Precision, float] = {"fp32": 1e-6, "bf16": 5e-3, "int8": 4e-2}


def planned(**options: Any) -> Plan:
    asked: dict[str, Any] = {
        "models": ("mlp",),
        "contestants": Contestants("torch,jax"),
        "blocks": 8,
        "seed": 1,
        "threads": 1,
    }
    return plan_of(RaceRequest(**(asked | options)))


def shown(plan: Plan, accuracies: Mapping[Precision, float] | None = None) -> Results:
    """Of processes that took 1 ms in fp32, half of it in bf16, and a quarter in int8."""
    processes = []
    for block in plan.blocks:
        for place in block.order:
            work = plan.work_of(block, place)
            faster = {"fp32": 1, "bf16": 2, "int8": 4}[work.precision]
            process = a_process(block.number, plan.contestants[place].text, 1e6 / faster, plan.works[block.work])
            if accuracies is not None:
                process.scores = {"top1": Score(accuracies[work.precision], None, None, "", 1000)}
            processes.append(_off_by(process, ERRORS[work.precision]))
    return results_of(Run(plan, processes, {}, {}), "r")


def _off_by(process: ProcessResult, error: float) -> ProcessResult:
    process.errors = [AnswerError("logits", "before", 1.0, error, error, True)]
    process.zero_weights = 0.25
    return process
