"""``fairlap.compare_over``: callables compared at every point of some axes, within one budget and one error rate.

A block holds every callable at every point, in a drawn order. What the machine does meanwhile then hits all points
alike, and a machine that becomes slower does not look like a cost that grows. A point that fails says why, and the
others go on.
"""

from __future__ import annotations

import math
import random
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from fairlap import quantity_text, verdict
from fairlap.engine.arguments import positive_number, whole_number
from fairlap.engine.timed_calls import name_of
from fairlap.errors import FairlapError, InvalidRequest, shown
from fairlap.machine.available_memory import available_memory_bytes
from fairlap.machine.hardware.device_roofs import roofs_of_device
from fairlap.machine.hardware.roofs import Roofs, kept_roofs, roofs_of, usable_cores
from fairlap.machine.race_lock.lock import one_race
from fairlap.scenarios.callables.answers.checked import Checked
from fairlap.scenarios.callables.answers.structural import STRUCTURAL
from fairlap.scenarios.callables.axes.axis import BadAxis, Point, axes_of, point_text, points_of
from fairlap.scenarios.callables.axes.by_size import costs_of, crossings_of, size_axis_of
from fairlap.scenarios.callables.axes.declared_work import (
    Declared,
    DeclaredWork,
    declared_at_points,
    roof_shares,
)
from fairlap.scenarios.callables.axes.point_inputs import point_inputs
from fairlap.scenarios.callables.axes.ready_point import (
    FEWEST_CALLABLES,
    Callables,
    PointSetting,
    ReadyPoint,
    ready_point,
)
from fairlap.scenarios.callables.axes.result import ComparisonOverAxes, PointResult
from fairlap.scenarios.callables.axes.structural_inputs import wrong_on_structural
from fairlap.scenarios.callables.checked_options import require_baseline, require_fit
from fairlap.scenarios.callables.device_timing import OnDevice
from fairlap.scenarios.callables.in_process import BUDGET_S, MARGIN, MOST_BLOCKS, Inputs
from fairlap.scenarios.callables.judging import Judge
from fairlap.scenarios.callables.stolen_meanwhile import StolenMeanwhile
from fairlap.scenarios.callables.turns import LONGEST_TURN_S, SHORTEST_TURN_S, Done

_MOST_SEED = 2**31 - 1
_FEWEST_BLOCKS = 24  # a fitted cost rests on times, which take more blocks than a clear verdict
_MOST_BLOCKS_UNTIL_DECIDED = 300
_FEWEST_BLOCKS_TO_TARGET, _MOST_BLOCKS_TO_TARGET = 12, 60
_SHARE_OF_MEMORY = 0.5  # that inputs may take: those of all points are there at the same time
_REPORT_EVERY_S = 10.0

Report: TypeAlias = Callable[[str], None]
MeasureRoofs: TypeAlias = Callable[[], Roofs]


@dataclass(frozen=True)
class _Ending:
    """When the blocks end. It never depends on which callable leads, except at the looks that are counted for it."""

    judge: Judge
    rule: verdict.StoppingRule | None
    most_blocks: int
    budget_s: float
    began_s: float

    def why(self, points: Sequence[ReadyPoint], blocks: int, blocks_began_s: float) -> str:
        """Empty to continue."""
        now_s = time.perf_counter()
        after = f"stopped after {quantity_text.count(blocks, 'block')}"
        is_a_look = self.judge.until_decided and blocks in verdict.possible_looks(blocks)
        if is_a_look and blocks >= _FEWEST_BLOCKS and all(each.is_decided(self.judge, blocks) for each in points):
            return f"{after}: every comparison is decided"
        if blocks and now_s - self.began_s + (now_s - blocks_began_s) / blocks > self.budget_s:
            return f"{after}: the budget allows no further block"
        if self.rule is not None and blocks > 1 and all(each.meets(self.rule, blocks) for each in points):
            return f"{after}: target met"
        return ""


def compare_over(
    callables: Callables,
    *,
    inputs: Inputs | Sequence[Inputs],
    axes: Mapping[str, str | Sequence[object]],
    reference: Callable[..., object] | None = None,
    any_answers: bool = False,
    bytes_per_call: Declared | None = None,
    flops_per_call: Declared | None = None,
    done: Done | Mapping[str, Done] | None = None,
    baseline: str | None = None,
    budget: float | None = None,
    blocks: int | None = None,
    target: float | None = None,
    seconds: float | None = None,
    seed: int | None = None,
    margin: float = MARGIN,
    alpha: float = 0.05,
    wait: bool = True,
    report: Report = lambda text: None,
    on_device: OnDevice | None = None,
    roofs: MeasureRoofs | None = None,
    **options: Any,
) -> ComparisonOverAxes:
    """Compare callables by name at every combination of the values of ``axes``, in this process.

    ``inputs`` draws the arguments of one call: ``draw(rng, n=1024)`` returns a tuple of positional ones, a mapping of
    keywords, or a single one. Each axis is a parameter of it, with a sequence of values or a text such as
    ``"1K..1M:x2"``, ``"10..100:+10"`` or ``"float32,float64"``; K, M and G are powers of 1024. ``dtype`` and ``layout``
    (contiguous, transposed, strided) that it does not take are applied to the NumPy arrays that it returns.

    In every block each callable has one turn at each point, in a drawn order. Blocks run, 24 at least, until every
    comparison is decided, or until another one would not fit into ``budget`` seconds for all points together: 2 for
    each point by default. At each point the error rate is ``alpha`` divided by the number of points, so that it holds
    for all verdicts together. ``baseline`` is the callable that ratios are of: the first by default.

    ``bytes_per_call`` and ``flops_per_call`` take axes by name and return what one call has to do; then the result has
    the share of the nearer roof of this machine, or of what ``roofs`` returns. ``on_device`` times on a GPU, on which
    ``inputs`` has to put the arguments. ``report`` is given what happens, as texts. ``done``, ``blocks``, ``target``,
    ``seconds``, ``margin``, ``wait`` and further options are those of :func:`fairlap.compare`.
    """
    began_s = time.perf_counter()
    all_axes = axes_of(axes)
    baseline = _checked_baseline(callables, baseline)
    if not callable(report):
        raise InvalidRequest(f"report must be a function that takes a text, not {shown(report)}")
    require_fit(options, alpha=alpha, margin=margin, target=target, seconds=seconds, any_answers=any_answers, wait=wait)
    seed = secrets.randbelow(_MOST_SEED) if seed is None else whole_number("seed", seed, least=0, most=_MOST_SEED)
    points = list(points_of(all_axes))
    until_decided = blocks is None and target is None
    judge = Judge(alpha / len(points), margin, until_decided, only_winner=False)
    draw, structural = _inputs_of(inputs)
    drawn = point_inputs(draw, all_axes)
    if any_answers and (reference is not None or structural):
        raise InvalidRequest("with any_answers no answer is compared; leave out reference= and structural inputs")
    waits = dict(done) if isinstance(done, Mapping) else {} if done is None else dict.fromkeys(callables, done)
    truth = None if reference is None else Checked(name_of(reference), reference, None)
    budget_s = _budget_s(budget, len(points), until_decided=until_decided)
    setting = PointSetting(
        callables,
        drawn,
        waits,
        {"stream": None, **options},
        _turn_s(seconds, until_decided=until_decided),
        on_device,
        truth,
        any_answers,
        wrong_on_structural(callables, waits, truth, drawn, points, seed) if structural else {},
        seed,
        budget_s / len(points),
        margin,
        until_steady=not until_decided,
    )
    works = [
        DeclaredWork(*amounts)
        for amounts in zip(
            declared_at_points("bytes", bytes_per_call, all_axes),
            declared_at_points("flops", flops_per_call, all_axes),
            strict=True,
        )
    ]
    most_blocks = _most_blocks(blocks, target)
    rule = None if target is None else verdict.StoppingRule(target, _FEWEST_BLOCKS_TO_TARGET, _MOST_BLOCKS_TO_TARGET)
    measured, why_no_roofs = None, ""
    if bytes_per_call is not None or flops_per_call is not None:
        measured, why_no_roofs = _measured_roofs(roofs or _roofs_of_this_machine(on_device, report))
    with one_race(wait=wait, longest_s=budget_s if math.isfinite(budget_s) else None):
        ending = _Ending(judge, rule, most_blocks, budget_s, time.perf_counter())
        meanwhile = StolenMeanwhile()
        with meanwhile.watched():
            found, failures, ended_early, interrupted = _timed(setting, points, works, ending, seed, report)
    starved = "" if on_device is not None or options.get("stream") is not None else meanwhile.why_not_claimed
    results = tuple(
        _point_result(found[place], judge, measured, why_no_roofs, starved) if place in found else failures[place]
        for place in range(len(points))
    )
    size_axis = size_axis_of(all_axes)
    return ComparisonOverAxes(
        callables=tuple(callables),
        baseline=baseline,
        axes=all_axes,
        size_axis=size_axis,
        points=results,
        costs=costs_of(results, size_axis, tuple(callables)),
        crossings=() if starved else crossings_of(results, size_axis, tuple(callables)),
        quantity=next((each.quantity for each in results if each.quantity), ""),
        alpha=alpha,
        blocks=max(each.blocks for each in results),
        seed=seed,
        elapsed_s=time.perf_counter() - began_s,
        roof_threads=measured.threads if measured else None,
        interrupted=interrupted,
        ended_early=ended_early,
    )


def _timed(
    setting: PointSetting,
    points: Sequence[Point],
    works: Sequence[DeclaredWork],
    ending: _Ending,
    seed: int,
    report: Report,
) -> tuple[dict[int, ReadyPoint], dict[int, PointResult], str, bool]:
    """Return the points that were timed, those that failed before, why the blocks ended, and whether by Ctrl-C."""
    rng = random.Random(seed)
    ready: dict[int, ReadyPoint] = {}
    failures = {place: PointResult(point, failed="not measured") for place, point in enumerate(points)}
    errors: list[FairlapError] = []
    most_bytes = _SHARE_OF_MEMORY * (available_memory_bytes() or math.inf)
    try:
        for place, point in enumerate(points):
            report(f"point {place + 1} of {len(points)}: {point_text(point)}")
            try:
                warm = ready_point(setting, point, works[place], most_bytes)
                if not warm.turns.warm_up():
                    return ready, failures, f"interrupted at {point_text(point)}, before the first block", True
            except FairlapError as error:
                failures[place] = PointResult(point, work=works[place], failed=str(error), code=error.code)
                errors.append(error)
                continue
            most_bytes -= warm.bytes_of_inputs
            ready[place] = warm
        if not ready:
            raise errors[0]
        ended, interrupted = _run_blocks(list(ready.values()), ending, rng, report)
    except KeyboardInterrupt:
        ended, interrupted = "", True
    done = max((each.blocks for each in ready.values()), default=0)
    return (
        ready,
        failures,
        f"interrupted after {quantity_text.count(done, 'block')}" if interrupted else ended,
        interrupted,
    )


def _run_blocks(points: Sequence[ReadyPoint], ending: _Ending, rng: random.Random, report: Report) -> tuple[str, bool]:
    began_s = reported_s = time.perf_counter()
    blocks = 0
    while blocks < ending.most_blocks and not all(each.failed for each in points):
        if why := ending.why(points, blocks, began_s):
            return why, False
        if time.perf_counter() - reported_s > _REPORT_EVERY_S:
            reported_s = time.perf_counter()
            took = quantity_text.seconds(reported_s - began_s)
            report(f"{quantity_text.count(blocks, 'block')} of all points in {took}")
        for each in rng.sample(points, len(points)):
            if not each.failed and not each.block(rng):
                return "", True
        blocks += 1
    return "", False


def _point_result(ready: ReadyPoint, judge: Judge, roofs: Roofs | None, why_no_roofs: str, starved: str) -> PointResult:
    ready.turns.warn_of_carry_over()
    blocks, answers = ready.blocks, ready.answers_checked()
    comparisons, why_none = ready.comparisons(judge, blocks)
    if comparisons and starved:
        comparisons, why_none = (), starved
    rows, not_ranked = ready.rows(blocks), ready.not_ranked()
    medians_ns = {row.name: row.median_ns for row in rows if row.name not in not_ranked}
    return PointResult(
        ready.point,
        rows,
        comparisons,
        blocks,
        ready.work,
        roof_shares(ready.work, medians_ns, roofs, why_no_roofs),
        ready.excluded | not_ranked,
        why_none,
        ready.failed,
        ready.code,
        ready.quantity,
        answers,
    )


def _inputs_of(inputs: Inputs | Sequence[Inputs]) -> tuple[Callable[..., Any], bool]:
    given: list[Any] = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    functions = [each for each in given if not isinstance(each, str)]
    if len(functions) != 1 or any(isinstance(each, str) and each != STRUCTURAL for each in given):
        raise BadAxis(f"inputs= takes one function that draws the arguments, and {STRUCTURAL!r} beside it")
    return functions[0], len(given) > 1


def _checked_baseline(callables: Callables, baseline: str | None) -> str:
    if not isinstance(callables, Mapping) or len(callables) < FEWEST_CALLABLES:
        raise InvalidRequest('pass at least two callables by name, such as compare_over({"a": f, "b": g}, ...)')
    require_baseline(callables, baseline)
    return next(iter(callables)) if baseline is None else baseline


def _turn_s(seconds: float | None, *, until_decided: bool) -> float:
    if seconds is not None:
        return positive_number("seconds", seconds)
    return SHORTEST_TURN_S if until_decided else LONGEST_TURN_S


def _most_blocks(blocks: int | None, target: float | None) -> int:
    if blocks is not None:
        return whole_number("blocks", blocks, least=1, most=MOST_BLOCKS)
    return _MOST_BLOCKS_UNTIL_DECIDED if target is None else _MOST_BLOCKS_TO_TARGET


def _budget_s(budget: float | None, points: int, *, until_decided: bool) -> float:
    """Blocks or a target end by themselves."""
    if budget is not None:
        return positive_number("budget", budget)
    return BUDGET_S * points if until_decided else math.inf


def _measured_roofs(measure: MeasureRoofs) -> tuple[Roofs | None, str]:
    try:
        return measure(), ""
    except FairlapError as error:
        return None, f"the roofs could not be measured: {error}"


def _roofs_of_this_machine(on_device: OnDevice | None, report: Report) -> MeasureRoofs:
    def measure() -> Roofs:
        if on_device is not None:
            return roofs_of_device(f"cuda:{on_device.number}")
        threads = len(usable_cores())
        if kept_roofs(threads) is None:
            report("measuring the roofs of this machine, which is done once and takes some seconds")
        return roofs_of(threads)

    return measure
