"""``fairlap.compare``: callables in randomly ordered blocks of one process, timed natively, judged by the verdict."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairlap import verdict
from fairlap.engine import digits, measure
from fairlap.engine.measurement import Measurement
from fairlap.engine.wishes import positive_number, whole_number
from fairlap.errors import WrongRequest, shown
from fairlap.in_process.comparison import CallableRow, InProcessComparison, judged
from fairlap.in_process.quiet import wait_until_quiet

MOST_BLOCKS = 10_000
_MOST_SEED = 2**31 - 1
_WARM_UP_CALLS = 1  # in a lap: the neighbour has just had the caches
_LONGEST_WAIT_S = 5.0
_WORK_THAT_WENT_ON = 0.1  # of the laps' time; a pool of threads spins for less before it sleeps

Done = Callable[[Any], object]


@dataclass
class _Arm:
    """One callable with what is known of it so far."""

    name: str
    fn: Callable[..., object]
    done: Done | None
    calls_per_sample: int = 1
    warnings: tuple[str, ...] = ()
    medians_ns: list[float] = field(default_factory=list)
    measured_s: float = 0.0
    afterwards_s: float = 0.0  # CPU time after its calls had returned


def compare(
    callables: Mapping[str, Callable[..., object]],
    *,
    done: Done | Mapping[str, Done] | None = None,
    stream: object | None = None,
    blocks: int = 24,
    seconds: float = 0.05,
    seed: int | None = None,
    margin: float = 0.02,
    alpha: float = 0.05,
    **options: Any,
) -> InProcessComparison:
    """Compare callables that take no arguments, by name, in this process.

    Every block times each callable for ``seconds``, in an order drawn for that block. ``done`` waits for what a
    call returned: one for all, or one for each name. ``stream`` and further options go to :func:`fairlap.measure`.
    Nobody is charged for a neighbour: the next lap begins when the process is quiet. A callable whose work goes on
    after its calls return, and which has no ``done``, gets no verdict.
    """
    blocks = whole_number("blocks", blocks, least=1, most=MOST_BLOCKS)
    seconds = positive_number("seconds", seconds)
    seed = secrets.randbelow(_MOST_SEED) if seed is None else whole_number("seed", seed, least=0, most=_MOST_SEED)
    arms = _arms(callables, done)
    interrupted = _run(arms, random.Random(seed), blocks, {"seconds": seconds, "stream": stream, **options})
    left_out = _whose_work_went_on(arms)
    complete = min(len(arm.medians_ns) for arm in arms)
    rows = sorted((_row(arm, complete) for arm in arms), key=lambda row: row.median_ns) if complete else []
    comparisons, standing, why_none = judged(rows, left_out, margin=margin, alpha=alpha)
    stopped = f"interrupted after {digits.counted(complete, 'block')} of {blocks}" if interrupted else ""
    notices = tuple(text for text in (stopped, *left_out.values(), why_none) if text)
    return InProcessComparison(tuple(rows), comparisons, standing, complete, seconds, seed, notices, interrupted)


def _arms(callables: Mapping[str, Callable[..., object]], done: Done | Mapping[str, Done] | None) -> list[_Arm]:
    if not isinstance(callables, Mapping) or len(callables) < 2:
        raise WrongRequest('give at least two callables by name, such as compare({"a": f, "b": g})')
    if strange := [shown(name) for name in callables if not isinstance(name, str)]:
        raise WrongRequest(f"callables are told apart by names, which are text; {', '.join(strange)} is none")
    waits = done if isinstance(done, Mapping) else dict.fromkeys(callables, done)
    if unknown := [shown(name) for name in waits if name not in callables]:
        raise WrongRequest(f"done= names {', '.join(unknown)}, which is none of the callables")
    return [_Arm(name, fn, waits.get(name)) for name, fn in callables.items()]


def _run(arms: list[_Arm], rng: random.Random, blocks: int, options: dict[str, Any]) -> bool:
    """Every arm once by itself, to warm up and to find how many calls make a sample; then block after block."""
    for arm in arms:
        first = _lap(arm, "auto", "auto", options)
        if first.interrupted:
            return True
        arm.calls_per_sample = first.calls_per_sample
        arm.warnings = tuple(notice.text for notice in first.warnings)
    for arm in arms:
        arm.measured_s = arm.afterwards_s = 0.0
    for _ in range(blocks):
        for arm in rng.sample(arms, len(arms)):
            lap = _lap(arm, _WARM_UP_CALLS, arm.calls_per_sample, options)
            if lap.interrupted:
                return True
            arm.medians_ns.append(lap.median_ns)
    return False


def _lap(arm: _Arm, warmup: Any, calls_per_sample: Any, options: dict[str, Any]) -> Measurement:
    lap = measure(arm.fn, done=arm.done, name=arm.name, warmup=warmup, calls_per_sample=calls_per_sample, **options)
    arm.measured_s += lap.elapsed_s
    arm.afterwards_s += wait_until_quiet(_LONGEST_WAIT_S)
    return lap


def _whose_work_went_on(arms: list[_Arm]) -> dict[str, str]:
    return {
        arm.name: f"no verdict on {arm.name}: the process was busy for {arm.afterwards_s:.2g} s after its calls had "
        f"returned, which took {arm.measured_s:.2g} s; if they are asynchronous, give a done= that waits for them"
        for arm in arms
        if arm.done is None and arm.afterwards_s > _WORK_THAT_WENT_ON * arm.measured_s
    }


def _row(arm: _Arm, complete: int) -> CallableRow:
    medians = tuple(arm.medians_ns[:complete])
    return CallableRow(arm.name, medians, verdict.contestant_figure(np.log(medians)), arm.warnings)
