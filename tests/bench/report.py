"""How long a report of a thousand rows takes, and how large it is. The race in it is invented; the page is real."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

from fairlap.engine.measurement import Notice
from fairlap.meters.memory import Memory
from fairlap.race.planning.plan import Block
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.run import Run
from fairlap.request.names import Contestants
from fairlap.request.work import Work
from fairlap.scenarios.process_result import AnswerError, ProcessResult, Timing

CONTESTANTS, MODELS, BATCHES, BLOCKS = 10, 10, (1, 2, 4, 8, 16), 6
MOST_SECONDS, MOST_BYTES = 5.0, 8e6


def invented_run() -> Run:
    """Ten contestants on fifty works under both conditions: a thousand rows from six thousand processes."""
    names = Contestants(",".join(f"framework{number}" for number in range(CONTESTANTS)))
    works = tuple(Work(f"model{number}", batch) for number in range(MODELS) for batch in BATCHES)
    plan = draw_plan(
        names, works, blocks=BLOCKS, conditions="controlled", threads=2, available_cores=(0, 1), seed=1
    )  # fmt: skip
    rng = random.Random(2)
    processes = [
        _process(block, position, names[place].text, works[block.work], (1 + place / 10) * rng.lognormvariate(0, 0.02))
        for block in plan.blocks
        for position, place in enumerate(block.order)
    ]
    return Run(plan, processes, {"cpu model": "Imaginary 9000"}, {}, began_at="2026-01-02T03:04:05+00:00")


def _process(block: Block, position: int, contestant: str, work: Work, slowness: float) -> ProcessResult:
    value = 1e6 * slowness * work.batch**0.8
    return ProcessResult(
        block=block.number,
        position=position,
        contestant=contestant,
        work_id=work.id,
        conditions=block.conditions,
        version="1.2.3",
        in_force={"threads": "2", "precision": "fp32", "flavour": contestant},
        phases_s={
            "interpreter": 0.06,
            "numpy": 0.07,
            "import": slowness,
            "build": 0.1,
            "compile": 0.5,
            "first_call": 0.01,
        },
        timings={"wall_ns": Timing(value, 1.05 * value, 1.3 * value, 200, 1, 0, "flat", "tsc stamps", 10.0)},
        errors=[AnswerError("logits", "before", 1.0, 2e-6, 1e-7 * slowness, True)],
        memory=Memory({"peak": 200_000_000, "anonymous": 120_000_000, "file": 70_000_000}),
        warnings=[Notice("W_PREEMPTED", f"the kernel took the core away {position} times")],
    )


def main() -> None:
    run = invented_run()
    began, began_cpu = time.perf_counter(), time.process_time()
    from fairlap.render.report.page import page_of
    from fairlap.results.results import results_of

    shown = results_of(run, "bench")
    judged_s = time.perf_counter() - began
    page = page_of(shown)
    whole_s, cpu_s = time.perf_counter() - began, time.process_time() - began_cpu
    rows, size = sum(len(work_result.rows) for work_result in shown.work_results), len(page.encode())
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page)
    print(f"{rows:,} rows from {len(run.processes):,} processes")
    wanted = f"wanted: at most {MOST_SECONDS:g} s"
    print(f"  time  {whole_s:.2f} s ({cpu_s:.2f} s of processor time); {wanted}")
    print(f"        of which verdicts and rows {judged_s:.2f} s")
    print(f"  size  {size / 1e6:.2f} MB; wanted: at most {MOST_BYTES / 1e6:g} MB")


if __name__ == "__main__":
    main()
