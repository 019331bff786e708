"""A run in which one contestant compiles again at another batch and breaks once, and another one could not be asked."""

from __future__ import annotations

import msgspec
from fairlap.frameworks.contract_parts.compilation import Operators
from fairlap.race.around_blocks.compilation_result import AtBatch, CompilationResult
from fairlap.race.run import Run
from fairlap.scenarios.untimed.compilation_messages import Described, Resized


def with_compilations(run: Run, reason: str = "the batch is new", others: tuple[AtBatch, ...] = ()) -> Run:
    """Of the first two contestants, on every work. The first one is called on ``others`` too."""
    first, second = (name.text for name in run.plan.contestants[:2])
    compiling = Described(
        graphs=2,
        graph_breaks=1,
        break_reasons=(reason,),
        operators=Operators(6, 5, "operators, and kernels"),
        takes_any_batch=True,
    )
    batches = (
        AtBatch(7, Resized(0.75, 0.25, None, 2, (reason,)), 0.125),
        AtBatch(8, Resized(why="it failed at batch 8"), None, "there is no call to compare with"),
        *others,
    )
    kind = run.plan.headline
    run.plan = msgspec.structs.replace(
        run.plan, recompile=(7, 8), recompile_inputs=tuple(each.inputs for each in others)
    )
    for work in run.plan.works:
        run.compilations += [
            CompilationResult(first, work.id, kind, compiling, batches),
            CompilationResult(second, work.id, kind, Described(), (), "E_CRASH", "it crashed in resize"),
        ]
    return run
