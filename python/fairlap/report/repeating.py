"""The command that draws a run's plan again, where there is one."""

from __future__ import annotations

import shlex

from fairlap.race.plan import Limits, Plan, draw_plan


def command_of(plan: Plan) -> str:
    """Empty when no command line draws this very plan; the saved plan itself always does."""
    modes = {(work.batch, work.mode, work.precision) for work in plan.works}
    if len(modes) != 1 or not plan.works:
        return ""
    cores = tuple(sorted({core for block in plan.blocks for core in block.cores}))
    blocks = sum(block.conditions == plan.headline for block in plan.blocks) // len(plan.works)
    try:
        again = draw_plan(
            plan.contestants,
            plan.works,
            blocks=blocks,
            conditions=plan.headline,
            threads=plan.threads,
            available_cores=cores,
            seed=plan.seed,
            data_seed=plan.data_seed,
            measuring=plan.measuring,
            limits=plan.limits,
            device=plan.device,
            min_memory=plan.min_memory,
            data=plan.data,
        )
    except ValueError:
        return ""
    sayable = plan.limits == Limits(memory_bytes=plan.limits.memory_bytes) and plan.measuring.samples is None
    if again != plan or plan.data_seed or not sayable:
        return ""
    [(batch, mode, precision)] = modes
    words = ["fairlap", "compare", *(work.model for work in plan.works)]
    words += ["--on", ",".join(name.text for name in plan.contestants)]
    words += ["--batch", str(batch), "--mode", mode, "--precision", precision, "--device", plan.device]
    words += ["--threads", str(plan.threads), "--blocks", str(blocks), "--conditions", plan.headline]
    words += ["--seconds", f"{plan.measuring.seconds:g}", "--seed", str(plan.seed)]
    if plan.data:
        words += ["--data", plan.data]
    if plan.limits.memory_bytes is not None:
        words += ["--memory-limit", str(plan.limits.memory_bytes)]
    if plan.min_memory:
        words.append("--min-memory")
    return shlex.join(words)
