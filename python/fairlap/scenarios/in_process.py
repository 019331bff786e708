"""``fairlap.compare``: callables in one process, in randomly ordered blocks.

After each callable it waits until all other threads are idle, so that no callable pays for another's late work.
"""

from __future__ import annotations

import math
import random
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fairlap import quantity_text, verdict
from fairlap.engine import measure
from fairlap.engine.arguments import positive_number, whole_number
from fairlap.engine.measurement import Measurement, Notice
from fairlap.errors import InvalidRequest, shown

_LOOK_EVERY_S = 0.0005
_BUSY_SHARE = 0.2  # of one core; a thread with work to do takes all of it
_TASKS = Path("/proc/self/task")


def wait_until_quiet(at_most_s: float) -> float:
    """Sleep until no other thread has anything to do; return the CPU time that they used until then."""
    began_s = time.perf_counter()
    used_by_others_s = 0.0
    while (look_s := time.perf_counter()) - began_s < at_most_s:
        before_s = _cpu_of_others_s()
        time.sleep(_LOOK_EVERY_S)
        others_wait = _others_want_a_core()
        used_s = _cpu_of_others_s() - before_s
        if not others_wait and used_s < _BUSY_SHARE * (time.perf_counter() - look_s):
            break
        used_by_others_s += used_s
    return used_by_others_s


def _cpu_of_others_s() -> float:
    """The CPU time of all threads but this one."""
    return time.process_time() - time.thread_time()


def _others_want_a_core() -> bool:
    """Whether the kernel has another thread of this process running or waiting for a core.

    On a crowded machine a thread with work to do may use no CPU time for a while. False where there is no /proc.
    """
    own = str(threading.get_native_id())
    try:
        return any(_state(task) == "R" for task in _TASKS.iterdir() if task.name != own)
    except OSError:
        return False


def _state(task: Path) -> str:
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""  # it has just ended


ONE_PROCESS = "All blocks ran in one process; another process may have another memory layout and show another order."


@dataclass(frozen=True)
class CallableRow:
    """One callable: its median in each block, and their centre with its interval."""

    name: str
    block_medians_ns: tuple[float, ...]
    figure: verdict.ContestantFigure
    warnings: tuple[Notice, ...]  # of its first measurement

    @property
    def median_ns(self) -> float:
        return float(np.median(self.block_medians_ns))


@dataclass(frozen=True)
class InProcessComparison:
    """Rows are sorted by time. A callable that cannot be judged has a row, but is in no comparison.

    ``ended_early`` and ``why_no_verdict`` are empty where they do not apply; ``excluded`` gives the reason by name.
    """

    rows: tuple[CallableRow, ...]
    comparisons: tuple[verdict.Comparison, ...]
    standing: verdict.Standing | None
    blocks: int
    seconds: float
    seed: int
    baseline: str
    interrupted: bool
    ended_early: str
    excluded: Mapping[str, str]
    why_no_verdict: str

    def between(self, a: str, b: str) -> verdict.Comparison:
        """The comparison with ``a`` as its subject."""
        for each in self.comparisons:
            if {each.a, each.b} == {a, b}:
                return each if each.a == a else each.reversed()
        judged = sorted({name for each in self.comparisons for name in (each.a, each.b)})
        raise KeyError(f"{a} and {b} were not compared; compared: {', '.join(judged) or 'none'}")

    def __str__(self) -> str:
        blocks = f"{quantity_text.count(self.blocks, 'block')} of {self.seconds:g} s each"
        lines = [f"{len(self.rows)} callables within one process, {blocks}, seed {self.seed}"]
        places = {place.contestant: place.label for place in self.standing.places} if self.standing else {}
        width = max((len(row.name) for row in self.rows), default=0)
        for row in self.rows:
            times = quantity_text.times(row.median_ns / self.rows[0].median_ns)
            lines.append(f"  {places.get(row.name, '-'):>3} {row.name:<{width}}  {_figure(row)}  {times}")
            lines += [f"      {' ' * width} ! {warning.text}" for warning in row.warnings]
        first = self.baseline or (self.standing.places[0].contestant if self.standing else "")
        lines += [f"  {verdict.sentence(each)}" for each in self.comparisons if first in (each.a, each.b)]
        no_verdict = f"no verdict: {self.why_no_verdict}" if self.why_no_verdict else ""
        lines += [f"  ! {each}" for each in (self.ended_early, *self.excluded.values(), no_verdict) if each]
        return "\n".join([*lines, f"  {ONE_PROCESS}"])


def _judged(
    rows: Sequence[CallableRow], excluded: Mapping[str, str], margin: float, alpha: float
) -> tuple[tuple[verdict.Comparison, ...], verdict.Standing | None, str]:
    """Comparisons of all that may be judged, or why there are none."""
    medians = {row.name: row.block_medians_ns for row in rows if row.name not in excluded}
    if len(medians) < 2:
        return (), None, f"{quantity_text.count(len(medians), 'callable')} can be judged; a comparison needs two"
    blocks = len(next(iter(medians.values())))
    if blocks < 2:
        return (), None, f"{quantity_text.count(blocks, 'complete block')}; a comparison needs two"
    table = verdict.block_table(medians, evidence="within one process")
    comparisons = verdict.judge([table], margin=margin, alpha=alpha)
    return comparisons, verdict.standing(table, comparisons), ""


def _figure(row: CallableRow) -> str:
    figure = row.figure
    if figure.value is None:
        return verdict.modes_sentence("", figure.modes, "ns").strip()
    return quantity_text.duration_interval(figure.value, figure.low or None, figure.high)


MOST_BLOCKS = 10_000
_MOST_SEED = 2**31 - 1
_WARM_UP_CALLS = 1  # in a block: the callable before has just used the caches
_LONGEST_WAIT_S = 5.0
_LATE_WORK_SHARE = 0.1  # of the measured time; a pool of threads spins for less before it sleeps
_FEWEST_BLOCKS_TO_TARGET = 12
_BLOCKS, _MOST_BLOCKS_TO_TARGET = 24, 60

Done = Callable[[Any], object]


@dataclass
class _Arm:
    """One callable and what has been measured of it."""

    name: str
    fn: Callable[..., object]
    done: Done | None
    calls_per_sample: int = 1
    warnings: tuple[Notice, ...] = ()
    medians_ns: list[float] = field(default_factory=list)
    measured_s: float = 0.0
    late_s: float = 0.0  # CPU time that other threads used after its calls had returned


def compare(
    callables: Mapping[str, Callable[..., object]],
    *,
    done: Done | Mapping[str, Done] | None = None,
    stream: object | None = None,
    baseline: str | None = None,
    blocks: int | None = None,
    target: float | None = None,
    budget: float | None = None,
    seconds: float = 0.05,
    seed: int | None = None,
    margin: float = 0.02,
    alpha: float = 0.05,
    **options: Any,
) -> InProcessComparison:
    """Compare callables that take no arguments, by name, in this process.

    Every block times each callable for ``seconds``, in an order drawn for that block. There are ``blocks`` of them: 24,
    or at most 60 if it stops early, when every interval is within +-``target`` (a share) or when another block would
    not fit into ``budget`` (seconds). ``baseline`` is the callable that the printed sentences compare with; the
    fastest by default.

    ``done`` waits for what a call returned: one for all, or one for each name. ``stream`` and further options go to
    :func:`fairlap.measure`. The next callable starts when all other threads are idle. A callable whose work continues
    after its calls return, and which has no ``done``, gets no verdict.
    """
    fallback = _BLOCKS if target is None and budget is None else _MOST_BLOCKS_TO_TARGET
    blocks = fallback if blocks is None else whole_number("blocks", blocks, least=1, most=MOST_BLOCKS)
    seconds = positive_number("seconds", seconds)
    seed = secrets.randbelow(_MOST_SEED) if seed is None else whole_number("seed", seed, least=0, most=_MOST_SEED)
    arms = _arms(callables, done)
    if baseline is not None and baseline not in callables:
        raise InvalidRequest(f"baseline={shown(baseline)} is not one of the callables")
    stop = _Stop(target, math.inf if budget is None else positive_number("budget", budget), blocks)
    ended_early = _run(arms, random.Random(seed), stop, {"seconds": seconds, "stream": stream, **options})
    interrupted = ended_early == _INTERRUPTED
    excluded = _with_late_work(arms)
    complete = min(len(arm.medians_ns) for arm in arms)
    if interrupted:
        ended_early = f"interrupted after {quantity_text.count(complete, 'block')} of {blocks}"
    rows = sorted((_row(arm, complete) for arm in arms), key=lambda row: row.median_ns) if complete else []
    comparisons, standing, why_none = _judged(rows, excluded, margin, alpha)
    return InProcessComparison(
        rows=tuple(rows),
        comparisons=comparisons,
        standing=standing,
        blocks=complete,
        seconds=seconds,
        seed=seed,
        baseline=baseline or "",
        interrupted=interrupted,
        ended_early=ended_early,
        excluded=excluded,
        why_no_verdict=why_none,
    )


_INTERRUPTED = "interrupted"


class _Stop:
    """When to stop before the last block: never by which callable leads, which would spoil the false-positive rate."""

    def __init__(self, target: float | None, budget_s: float, blocks: int) -> None:
        fewest = min(_FEWEST_BLOCKS_TO_TARGET, max(blocks, 2))
        self.blocks = blocks
        self._rule = None if target is None else verdict.StoppingRule(target, minimum=fewest, cap=max(blocks, fewest))
        self._budget_s = budget_s
        self._began_s = time.perf_counter()

    def why(self, arms: Sequence[_Arm]) -> str:
        """Empty to continue."""
        done = len(arms[0].medians_ns)
        elapsed_s = time.perf_counter() - self._began_s
        if done and elapsed_s * (done + 1) / done > self._budget_s:
            return f"stopped after {quantity_text.count(done, 'block')}: the budget allows no further block"
        if self._rule is None or done < 2:
            return ""
        table = verdict.block_table({arm.name: arm.medians_ns for arm in arms})
        advice = verdict.advise(table, self._rule)
        return (
            f"stopped after {quantity_text.count(done, 'block')}: target met" if advice.reason == "target met" else ""
        )


def _arms(callables: Mapping[str, Callable[..., object]], done: Done | Mapping[str, Done] | None) -> list[_Arm]:
    if not isinstance(callables, Mapping) or len(callables) < 2:
        raise InvalidRequest('pass at least two callables by name, such as compare({"a": f, "b": g})')
    if strange := [shown(name) for name in callables if not isinstance(name, str)]:
        raise InvalidRequest(f"the names of callables must be strings (got {', '.join(strange)})")
    waits = done if isinstance(done, Mapping) else dict.fromkeys(callables, done)
    if unknown := [shown(name) for name in waits if name not in callables]:
        raise InvalidRequest(f"done= has a name that is not among the callables: {', '.join(unknown)}")
    return [_Arm(name, fn, waits.get(name)) for name, fn in callables.items()]


def _run(arms: list[_Arm], rng: random.Random, stop: _Stop, options: dict[str, Any]) -> str:
    """Each callable once, to warm up and to find how many calls make a sample; then block after block.

    Returns why it stopped before the last block, or an empty text.
    """
    for arm in arms:
        first = _timed(arm, "auto", "auto", options)
        if first.interrupted:
            return _INTERRUPTED
        arm.calls_per_sample = first.calls_per_sample
        arm.warnings = first.warnings
    for arm in arms:
        arm.measured_s = arm.late_s = 0.0
    for _ in range(stop.blocks):
        if why := stop.why(arms):
            return why
        for arm in rng.sample(arms, len(arms)):
            measurement = _timed(arm, _WARM_UP_CALLS, arm.calls_per_sample, options)
            if measurement.interrupted:
                return _INTERRUPTED
            arm.medians_ns.append(measurement.median_ns)
    return ""


def _timed(arm: _Arm, warmup: Any, calls_per_sample: Any, options: dict[str, Any]) -> Measurement:
    found = measure(arm.fn, done=arm.done, name=arm.name, warmup=warmup, calls_per_sample=calls_per_sample, **options)
    arm.measured_s += found.elapsed_s
    arm.late_s += wait_until_quiet(_LONGEST_WAIT_S)
    return found


def _with_late_work(arms: list[_Arm]) -> dict[str, str]:
    return {
        arm.name: f"no verdict on {arm.name}: other threads worked for {quantity_text.seconds(arm.late_s)} after its "
        f"calls had returned ({quantity_text.seconds(arm.measured_s)} measured); if the calls are asynchronous, pass a "
        "done= that waits for them"
        for arm in arms
        if arm.done is None and arm.late_s > _LATE_WORK_SHARE * arm.measured_s
    }


def _row(arm: _Arm, complete: int) -> CallableRow:
    medians = tuple(arm.medians_ns[:complete])
    return CallableRow(arm.name, medians, verdict.contestant_figure(np.log(medians)), arm.warnings)
