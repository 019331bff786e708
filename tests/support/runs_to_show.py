"""Runs for pages: two batch sizes under both conditions, names that try to break out, one who did other work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt
from fairlap.engine.measurement import Notice
from fairlap.meters.memory import Memory
from fairlap.race.planning.plan import Block
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.run import Run
from fairlap.request.names import ContestantName
from fairlap.request.work import Conditions, Work
from fairlap.scenarios.calls.latency_messages import Feeding
from fairlap.scenarios.process_result import AnswerError, ProcessResult, Timing

SCRIPT = "<script>alert(1)</script>"
ENDING = "a</script><img src=x onerror=alert(2)>"
WRONG = "wrong"
PLAIN = ("torch", "jax", WRONG)
HOSTILE = (SCRIPT, ENDING, WRONG)
STEADY_FROM = 20


def run_of(
    contestants: tuple[str, ...] = PLAIN,
    *,
    batches: tuple[int, ...] = (4, 8),
    blocks: int = 8,
    conditions: Conditions | Literal["both"] = "controlled",
    models: tuple[str, ...] = ("mlp",),
) -> Run:
    """Make a run in which the first takes a millisecond for batch 4, the second two, and so on.

    ``wrong`` gives a wrong answer.
    """
    names = tuple(ContestantName(text, text) for text in contestants)
    works = tuple(Work(model, batch) for model in models for batch in batches)
    plan = draw_plan(
        names, works, blocks=blocks, conditions=conditions, threads=1, available_cores=(0, 1), seed=3
    )  # fmt: skip
    processes = [
        _process(block, contestants[place], works[block.work], 1e6 * (place + 1) * works[block.work].batch / 4)
        for block in plan.blocks
        for place in block.order
    ]
    machine = {"cpu model": "Imaginary 9000", "kernel": contestants[0]}
    return Run(plan, processes, machine, {"whole": 10.0}, began_at="2026-01-02T03:04:05+00:00")


def fed(contestants: tuple[str, ...]) -> Run:
    """Feed the first by a pipeline that reports what it waited for, the others by one that does not."""
    run = run_of(contestants, batches=(4,), blocks=6)
    run.plan = msgspec.structs.replace(run.plan, data="synthetic")
    for process in run.processes:
        causes: dict[str, Any] = (
            {"source_ns": 5e7, "staging_ns": 1.5e8, "no_slot_ns": 0.0} if process.contestant == contestants[0] else {}
        )
        process.feeding = Feeding(4000, 1000, wall_ns=1e9, work_ns=8e8, waited_ns=2e8, **causes)
        process.in_force = {**process.in_force, "feed": f"pipeline of {process.contestant}"}
    return run


def _process(block: Block, name: str, work: Work, ns: float) -> ProcessResult:
    value = ns * (1 + 0.001 * (block.number % 5)) * (1.2 if block.conditions == "as-found" else 1.0)
    process = ProcessResult(
        block=block.number,
        position=0,
        contestant=name,
        work_id=work.id,
        conditions=block.conditions,
        version=f"1.2.3 {name}",
        in_force={"threads": "1", "precision": "fp32", "flavour": name, f"only {name}": "yes"},
        timings={"wall_ns": Timing(value, 1.1 * value, 1.5 * value, 100, 1, STEADY_FROM, "flat", "tsc stamps", 10.0)},
        errors=[AnswerError("logits", "before", 1.0, 2e-6, 1e-7, True)],
        phases_s={"interpreter": 0.1, "import": 1.0, "build": 0.5, "compile": 2.0, "first_call": 0.01, "measured": 1.5},
        memory=Memory({"peak": 100_000_000, "anonymous": 70_000_000, "file": 20_000_000}),
        warnings=[Notice(f"W_{name}", f"{name} complained {block.number} times")],
    )
    if name == WRONG and block.number == 0:
        process.outcome, process.message = "disqualified", f"its answer is wrong {SCRIPT}"
        process.errors = [AnswerError("logits", "before", 0.1, 1.0, 2.0, False, "its cosine is 0.1")]
        process.details = f"Traceback {ENDING}"
    return process


def samples(block: int, contestant: str) -> Mapping[str, npt.NDArray[Any]]:
    """Draw a warm-up of 20 slow calls, then steady ones."""
    rng = np.random.default_rng(block)
    steady = rng.normal(1e6, 1e4, 100)
    steady[:STEADY_FROM] *= 3
    return {"wall_ns": steady}
