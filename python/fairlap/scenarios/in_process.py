"""``fairlap.compare``: callables in randomly ordered blocks of one process, timed natively, judged by the verdict.

Waiting until a process has nothing left to do, so that nobody is charged for a neighbour's late work.

What comparing callables within one process showed, and how a person reads it.
"""

from __future__ import annotations

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
from fairlap.engine.measurement import Measurement
from fairlap.errors import InvalidRequest, shown

_LOOK_EVERY_S = 0.0005
_BUSY_SHARE = 0.2  # of one core; a thread with work to do takes all of it
_TASKS = Path("/proc/self/task")


def wait_until_quiet(at_most_s: float) -> float:
    """Sleep until no other thread has anything to do; the CPU time that they used until then."""
    began_s = time.perf_counter()
    went_on_s = 0.0
    while (look_s := time.perf_counter()) - began_s < at_most_s:
        before_s = _cpu_of_others_s()
        time.sleep(_LOOK_EVERY_S)
        others_wait = _others_want_a_core()
        used_s = _cpu_of_others_s() - before_s
        if not others_wait and used_s < _BUSY_SHARE * (time.perf_counter() - look_s):
            break
        went_on_s += used_s
    return went_on_s


def _cpu_of_others_s() -> float:
    """The CPU time of all threads but this one, whose looking around is not what is asked about."""
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


ONE_PROCESS = "All blocks were one process; another may have drawn another memory layout, so compare processes too."


@dataclass(frozen=True)
class CallableRow:
    """One callable's median of each block, and the middle of those with its interval."""

    name: str
    block_medians_ns: tuple[float, ...]
    figure: verdict.ContestantFigure
    warnings: tuple[str, ...]  # of the engine, from its first measurement

    @property
    def median_ns(self) -> float:
        return float(np.median(self.block_medians_ns))


@dataclass(frozen=True)
class InProcessComparison:
    """The fastest first. Who cannot be judged has a row, and stands in no comparison."""

    rows: tuple[CallableRow, ...]
    comparisons: tuple[verdict.Comparison, ...]
    standing: verdict.Standing | None
    blocks: int
    seconds: float
    seed: int
    notices: tuple[str, ...]
    interrupted: bool

    def between(self, a: str, b: str) -> verdict.Comparison:
        """The verdict told from a's side."""
        for each in self.comparisons:
            if {each.a, each.b} == {a, b}:
                return each if each.a == a else each.reversed()
        judged = sorted({name for each in self.comparisons for name in (each.a, each.b)})
        raise KeyError(f"{a} and {b} are not compared; compared are: {', '.join(judged) or 'none'}")

    def __str__(self) -> str:
        times = f"{quantity_text.count(self.blocks, 'block')} of {self.seconds:g} s each"
        lines = [f"{len(self.rows)} callables within one process, {times}, orders drawn with seed {self.seed}"]
        places = {place.contestant: place.label for place in self.standing.places} if self.standing else {}
        width = max((len(row.name) for row in self.rows), default=0)
        for row in self.rows:
            times = f"{row.median_ns / self.rows[0].median_ns:.2f}x"
            lines.append(f"  {places.get(row.name, '-'):>3} {row.name:<{width}}  {_figure(row)}  {times}")
            lines += [f"      {' ' * width} ! {text}" for text in row.warnings]
        first = self.standing.places[0].contestant if self.standing else ""
        lines += [f"  {verdict.sentence(each)}" for each in self.comparisons if first in (each.a, each.b)]
        lines += [f"  ! {notice}" for notice in self.notices]
        return "\n".join([*lines, f"  {ONE_PROCESS}"])


def judged(
    rows: Sequence[CallableRow], left_out: Mapping[str, str], *, margin: float, alpha: float
) -> tuple[tuple[verdict.Comparison, ...], verdict.Standing | None, str]:
    """Verdicts between all that may be judged, or why there are none."""
    may = {row.name: row.block_medians_ns for row in rows if row.name not in left_out}
    if len(may) < 2:
        return (
            (),
            None,
            f"no verdict: {quantity_text.count(len(may), 'callable')} can be judged, and a comparison needs two",
        )
    blocks = len(next(iter(may.values())))
    if blocks < 2:
        return (
            (),
            None,
            f"no verdict: {quantity_text.count(blocks, 'block')} complete; two are needed, and six to claim",
        )
    table = verdict.block_table(may, evidence="within one process")
    comparisons = verdict.judge([table], margin=margin, alpha=alpha)
    return comparisons, verdict.standing(table, comparisons), ""


def _figure(row: CallableRow) -> str:
    figure = row.figure
    if figure.value is None:
        return verdict.modes_sentence("", figure.modes, "ns").strip()
    if not figure.low or figure.high is None or np.isinf(figure.high):
        return quantity_text.duration(row.median_ns)
    return quantity_text.duration_interval(figure.value, figure.low, figure.high)


MOST_BLOCKS = 10_000
_MOST_SEED = 2**31 - 1
_WARM_UP_CALLS = 1  # in a process: the neighbour has just had the caches
_LONGEST_WAIT_S = 5.0
_WORK_THAT_WENT_ON = 0.1  # of the processes' time; a pool of threads spins for less before it sleeps

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
    Nobody is charged for a neighbour: the next process begins when the process is quiet. A callable whose work goes on
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
    stopped = f"interrupted after {quantity_text.count(complete, 'block')} of {blocks}" if interrupted else ""
    notices = tuple(text for text in (stopped, *left_out.values(), why_none) if text)
    return InProcessComparison(tuple(rows), comparisons, standing, complete, seconds, seed, notices, interrupted)


def _arms(callables: Mapping[str, Callable[..., object]], done: Done | Mapping[str, Done] | None) -> list[_Arm]:
    if not isinstance(callables, Mapping) or len(callables) < 2:
        raise InvalidRequest('give at least two callables by name, such as compare({"a": f, "b": g})')
    if strange := [shown(name) for name in callables if not isinstance(name, str)]:
        raise InvalidRequest(f"callables are told apart by names, which are text; {', '.join(strange)} is none")
    waits = done if isinstance(done, Mapping) else dict.fromkeys(callables, done)
    if unknown := [shown(name) for name in waits if name not in callables]:
        raise InvalidRequest(f"done= names {', '.join(unknown)}, which is none of the callables")
    return [_Arm(name, fn, waits.get(name)) for name, fn in callables.items()]


def _run(arms: list[_Arm], rng: random.Random, blocks: int, options: dict[str, Any]) -> bool:
    """Every arm once by itself, to warm up and to find how many calls make a sample; then block after block."""
    for arm in arms:
        first = _process(arm, "auto", "auto", options)
        if first.interrupted:
            return True
        arm.calls_per_sample = first.calls_per_sample
        arm.warnings = tuple(notice.text for notice in first.warnings)
    for arm in arms:
        arm.measured_s = arm.afterwards_s = 0.0
    for _ in range(blocks):
        for arm in rng.sample(arms, len(arms)):
            process = _process(arm, _WARM_UP_CALLS, arm.calls_per_sample, options)
            if process.interrupted:
                return True
            arm.medians_ns.append(process.median_ns)
    return False


def _process(arm: _Arm, warmup: Any, calls_per_sample: Any, options: dict[str, Any]) -> Measurement:
    process = measure(arm.fn, done=arm.done, name=arm.name, warmup=warmup, calls_per_sample=calls_per_sample, **options)
    arm.measured_s += process.elapsed_s
    arm.afterwards_s += wait_until_quiet(_LONGEST_WAIT_S)
    return process


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
