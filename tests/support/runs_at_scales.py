"""Runs at several scales whose times were planted: how fast each scale is, what its exchange costs, who is slow."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from fairlap.meters.energy import EnergyOfBlock, EnergyRead
from fairlap.meters.memory import Memory
from fairlap.models.call_cost import CallCost
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.run import Run
from fairlap.request.fields.scale import Scale, Scaling
from fairlap.request.fields.training import Sgd, Training
from fairlap.request.names import Contestants
from fairlap.request.work import Work
from fairlap.scenarios.process_result import ProcessResult, Timing
from fairlap.scenarios.ranks.ranks_messages import RanksFound, SteppedAlone

STEP_NS = 100e6
"""On the smallest scale."""
GRADIENT_BYTES = 4e6
BATCH = 48


def a_plan(
    scales: Sequence[Scale], *, blocks: int = 12, listed: str = "torch,jax", batch: int = BATCH, seed: int = 3
) -> Plan:
    training = Training(Sgd(lr=0.01))
    works = tuple(
        Work("mlp", batch * (scale.ranks if scale.scaling == "weak" else 1), "train", training=training, scale=scale)
        for scale in scales
    )
    return draw_plan(
        Contestants(listed),
        works,
        blocks=blocks,
        conditions="controlled",
        threads=max(scale.threads for scale in scales),
        available_cores=tuple(range(64)),
        seed=seed,
    )


def a_run(
    scales: Sequence[Scale],
    speed_ups: Mapping[Scale, float],
    *,
    blocks: int = 12,
    noise: float = 0.01,
    noise_of_a_pass: float = 0.0,
    exchange_ns: float = 0.0,
    slow_rank: int | None = None,
    slow_by: float = 0.0,
    again: float = 1.0,
    listed: str = "torch,jax",
    seed: int = 3,
) -> Run:
    """Make a run whose items per second are so many times those of the first scale.

    Of ``noise_of_a_pass`` all blocks of a pass have the same. A rank takes alone what the step takes without the
    exchange; the slow one that much longer. In turns with steps alone, steps of all ranks take ``again`` times as long
    as in the measurement.
    """
    plan = a_plan(scales, blocks=blocks, listed=listed, seed=seed)
    drawn = random.Random(seed)
    of_pass = [1 + drawn.uniform(-noise_of_a_pass, noise_of_a_pass) for _ in range(blocks)]
    processes = []
    for place, block in enumerate(plan.blocks):
        work = plan.works[block.work]
        assert work.scale is not None
        for contestant in block.order:
            items = work.batch / plan.works[0].batch
            factor = of_pass[place // len(plan.works)] * (1 + drawn.uniform(-noise, noise))
            step_ns = STEP_NS * items / speed_ups[work.scale] * factor
            processes.append(
                _process(
                    block.number,
                    plan.contestants[contestant].text,
                    work,
                    step_ns,
                    _ranks(work.scale, step_ns, exchange_ns, slow_rank, slow_by, again),
                )
            )
    return Run(plan, processes, {"cpu model": "Imaginary 9000", "cores": "64"}, {"whole": 10.0}, "2026-01-02T03:04:05")


def _process(block: int, name: str, work: Work, step_ns: float, found: RanksFound) -> ProcessResult:
    scale = work.scale
    assert scale is not None
    return ProcessResult(
        block=block,
        position=0,
        contestant=name,
        work_id=work.id,
        conditions="controlled",
        version="1.2.3",
        in_force={"threads": str(scale.threads)},
        timings={"wall_ns": Timing(step_ns, 1.1 * step_ns, 1.5 * step_ns, 100, 1, 0, "flat", "tsc stamps", 10.0)},
        memory=Memory({"peak": 4_000_000}),
        phases_s={"import": 1.0, "first_call": 0.01},
        energy=EnergyOfBlock(10.0, 100, [EnergyRead("powercap", 480.0, 470.0, 490.0)]),
        call_cost=CallCost(1e6, 2e6, 4, 1e8, exchanged_bytes=GRADIENT_BYTES if scale.ranks > 1 else None),
        ranks=found if scale.ranks > 1 else None,
    )


def _ranks(
    scale: Scale, step_ns: float, exchange_ns: float, slow_rank: int | None, slow_by: float, again: float
) -> RanksFound:
    """Time the ranks: the slowest takes alone what is left of the step without the exchange."""
    slowest_ns = step_ns - exchange_ns
    others_ns = slowest_ns / (1 + slow_by)
    alone = [slowest_ns if rank == slow_rank else others_ns for rank in range(scale.ranks)]
    if slow_rank is None:
        alone = [slowest_ns] * scale.ranks
    turns = (0.99, 1.0, 1.01)
    return RanksFound(
        hosts=scale.hosts or ("here",) * scale.ranks,
        memory=tuple(Memory({"peak": 1_000_000 + 1000 * rank}) for rank in range(scale.ranks)),
        stepped=SteppedAlone(
            tuple(step_ns * again * turn for turn in turns), tuple(tuple(ns * turn for turn in turns) for ns in alone)
        ),
    )


def threads(*counts: int) -> tuple[Scale, ...]:
    return tuple(Scale(count) for count in counts)


def ranks(*counts: int, scaling: Scaling = "strong") -> tuple[Scale, ...]:
    return tuple(Scale(1, count, scaling) for count in counts)
