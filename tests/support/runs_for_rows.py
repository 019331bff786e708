"""A run of two contestants as the store and the exports meet it: figures, errors, memory, one that crashed."""

from __future__ import annotations

import random

from fairlap.engine.measurement import Notice
from fairlap.meters.memory import Memory
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.run import Run
from fairlap.request.names import Contestants
from fairlap.request.work import Mode, Work
from fairlap.scenarios.process_result import AnswerError, ProcessResult, Timing

MACHINE = {"cpu model": "Imaginary 9000", "cores": "2", "kernel": "6.1"}


def a_process(block: int, name: str, ns: float, work: Work) -> ProcessResult:
    value = ns * (1 + random.Random(f"{block} {name}").uniform(-0.005, 0.005))
    return ProcessResult(
        block=block,
        position=0,
        contestant=name,
        work_id=work.id,
        conditions="controlled",
        version="1.2.3",
        in_force={"threads": "2", "precision": "fp32"},
        timings={"wall_ns": Timing(value, 1.1 * value, 1.5 * value, 100, 1, 0, "flat", "tsc stamps", 10.0)},
        errors=[AnswerError("logits", "before", 1.0, 2e-6, 1e-7, True)],
        phases_s={"interpreter": 0.1, "import": 1.0, "build": 0.5, "compile": 2.0, "first_call": 0.01, "measured": 1.5},
        memory=Memory({"peak": 1_000_000, "anonymous": 700_000}),
        warnings=[Notice("W_COARSE_CLOCK", "the clock is coarse")],
    )


def a_run(blocks: int = 8, mode: Mode = "infer", listed: str = "torch,jax:fast") -> Run:
    """Make a run in which the first named takes 2 ms, the second 1 ms, and so on."""
    work = Work("mlp", 4, mode)
    names = Contestants(listed)
    plan = draw_plan(
        names, (work,), blocks=blocks, conditions="controlled", threads=1, available_cores=(0, 1), seed=1,
    )  # fmt: skip
    processes = [
        a_process(block.number, names[place].text, 2e6 / (place + 1), work)
        for block in plan.blocks
        for place in block.order
    ]
    return Run(plan, processes, dict(MACHINE), {"whole": 10.0}, began_at="2026-01-02T03:04:05+00:00")


def crashed(process: ProcessResult) -> None:
    process.outcome, process.code, process.message = "crash", "E_CRASH", "ended by SIGSEGV"
    process.timings, process.errors = {}, []
