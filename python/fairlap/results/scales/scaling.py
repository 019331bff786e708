"""How contestants scale: each at several scales of the same work, compared within the same pass over the works.

A pass is one block of every work, in drawn order; what the machine does for longer than that hits all scales. Speed-up
is over the smallest scale, in items per second; efficiency is speed-up over that of a linear one. Both have a verdict
of the same kind as two contestants have: is it faster than at the smallest scale, and is it slower than linear?
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairlap import verdict
from fairlap.race.planning.plan import Plan
from fairlap.request.fields.scale import Scale
from fairlap.request.work import Conditions, Work
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.columns.ranks import exchange_ns
from fairlap.results.scales.scaling_series import ScalePoint, ScalingSeries
from fairlap.results.work_result import ContestantResult, WorkResult
from fairlap.scenarios.process_result import ProcessResult

SPEED_UP = verdict.THROUGHPUT
EFFICIENCY = verdict.Metric("throughput per core", "items/s", better="higher")


def scaling_of(plan: Plan, found: Sequence[WorkResult]) -> tuple[ScalingSeries, ...]:
    """All contestants on all works that were raced at several scales. One family of comparisons for each question."""
    passes = _passes(plan)
    series = [
        _Measured.of(results, contestant.text, passes)
        for results in _groups(plan, found)
        for contestant in plan.contestants
    ]
    measured = [each for each in series if each is not None]
    with_efficiency = [each for each in measured if not each.no_efficiency(plan.device)]
    speed_ups = _judged(measured, SPEED_UP, plan.device)
    efficiencies = _judged(with_efficiency, EFFICIENCY, plan.device)
    return tuple(each.compared(plan.device, speed_ups, efficiencies) for each in measured)


def _groups(plan: Plan, found: Sequence[WorkResult]) -> Iterator[list[WorkResult]]:
    """Works that differ in their scale alone, under the same conditions; the smallest scale first."""
    groups: dict[tuple[Work, str, Conditions], list[WorkResult]] = {}
    for each in found:
        if each.work.scale is not None:
            key = (each.work.without_scale(), each.work.scale.scaling, each.conditions)
            groups.setdefault(key, []).append(each)
    for group in groups.values():
        if len(group) > 1:
            yield sorted(group, key=lambda each: _size(each.work))


def _size(work: Work) -> tuple[int, int, int]:
    scale = work.scale
    assert scale is not None
    return scale.cores, scale.ranks, scale.threads


def _passes(plan: Plan) -> dict[int, int]:
    """By block: how many blocks of the same work and conditions were drawn before it."""
    counts: dict[tuple[int, Conditions], int] = {}
    found = {}
    for block in plan.blocks:
        key = (block.work, block.conditions)
        found[block.number] = counts.get(key, 0)
        counts[key] = found[block.number] + 1
    return found


_Comparisons = Mapping[tuple[str, str], verdict.Comparison]


@dataclass(frozen=True)
class _Measured:
    """What one contestant did at all scales of one work."""

    contestant: str
    results: tuple[WorkResult, ...]  # the smallest scale first
    whys: Mapping[Scale, str]  # scales that cannot be compared
    common: tuple[int, ...]  # passes
    processes: Mapping[Scale, Mapping[int, ProcessResult]]  # by pass, of the scales that are compared

    @classmethod
    def of(cls, results: Sequence[WorkResult], contestant: str, passes: Mapping[int, int]) -> _Measured | None:
        """None where it took no part."""
        own = {
            result.work.scale: next((each for each in result.contestants if each.contestant == contestant), None)
            for result in results
        }
        if not any(own.values()):
            return None
        metrics = {result.basis.metric for result in results}
        processes: dict[Scale, dict[int, ProcessResult]] = {}
        whys = {}
        for scale, found in own.items():
            assert scale is not None
            why = _why_not(found) or ("" if len(metrics) == 1 else "scales are not ranked by the same figure")
            if why or found is None:
                whys[scale] = why
            else:
                processes[scale] = {passes[each.block]: each for each in found.finished if each.block in passes}
        common = sorted(set.intersection(*(set(each) for each in processes.values()))) if processes else []
        return cls(contestant, tuple(results), whys, tuple(common), processes)

    @property
    def smallest(self) -> Scale:
        scale = self.results[0].work.scale
        assert scale is not None
        return scale

    @property
    def name(self) -> str:
        first = self.results[0]
        return f"{first.work.label} · {first.conditions} · {self.contestant}"

    def work_of(self, scale: Scale) -> WorkResult:
        return next(each for each in self.results if each.work.scale == scale)

    def times_ns(self, scale: Scale) -> list[float]:
        """Of an item, by common pass."""
        result, processes = self.work_of(scale), self.processes[scale]
        return [result.basis.judged.figure_ns(processes[number]) / result.work.batch for number in self.common]

    @property
    def why_none(self) -> str:
        """Why no scale can be compared with the smallest."""
        if self.smallest in self.whys:
            return f"it is compared with {self.smallest.text}, where it is not ranked"
        return "" if self.common else "there is no pass in which all scales finished"

    def no_efficiency(self, device: str) -> str:
        """Why speed-up has no linear one beside it."""
        if device == "cpu" or any(scale.ranks > self.smallest.ranks for scale in self.processes):
            return ""
        return f"threads are those of the host, and {device} does the work"

    def resources(self, scale: Scale, device: str) -> float:
        """How many times those of the smallest scale."""
        return scale.cores / self.smallest.cores if device == "cpu" else scale.ranks / self.smallest.ranks

    def table(self, metric: verdict.Metric, device: str) -> verdict.BlockTable | None:
        if self.why_none or len(self.processes) < 2 or len(self.common) < 2:
            return None
        parts = {scale: 1.0 if metric == SPEED_UP else self.resources(scale, device) for scale in self.processes}
        figures = {
            scale.text: verdict.Figures("items/s", [1e9 / (time * parts[scale]) for time in self.times_ns(scale)])
            for scale in self.processes
        }
        return verdict.block_table(figures, metric=metric, workload=self.name)

    def compared(self, device: str, speed_ups: _Comparisons, efficiencies: _Comparisons) -> ScalingSeries:
        first = self.results[0].work
        points = [self._point(result.work, device, speed_ups, efficiencies) for result in self.results]
        whole = not self.why_none
        return ScalingSeries(
            self.contestant,
            first.without_scale(),
            self.smallest.scaling == "weak",
            self.results[0].conditions,
            tuple(points),
            len(self.common),
            {scale: np.log(self.times_ns(scale)).tolist() for scale in self.processes} if whole else {},
            self._exchanges_ns() if whole else {},
            self._exchanged_bytes(),
        )

    def _exchanges_ns(self) -> dict[Scale, list[float]]:
        found = {}
        for scale, processes in self.processes.items():
            times = [exchange_ns(processes[number]) for number in self.common]
            known = [time for time in times if time is not None]
            if scale.ranks > 1 and known and len(known) == len(times):
                found[scale] = known
        return found

    def _exchanged_bytes(self) -> dict[Scale, float]:
        costs = {scale: [each.call_cost for each in own.values()] for scale, own in self.processes.items()}
        return {
            scale: size
            for scale, own in costs.items()
            if (size := next((cost.exchanged_bytes for cost in own if cost is not None), None)) is not None
        }

    def _point(self, work: Work, device: str, speed_ups: _Comparisons, efficiencies: _Comparisons) -> ScalePoint:
        scale = work.scale
        assert scale is not None
        why = self.whys.get(scale, "") or self.why_none
        no_efficiency = self.no_efficiency(device)
        if why:
            return ScalePoint(work, scale, absent=why)
        if scale == self.smallest:
            one = Estimate(1.0)
            return ScalePoint(work, scale, one, efficiency=None if no_efficiency else one, no_efficiency=no_efficiency)
        if (self.name, scale.text) not in speed_ups:
            return self._of_one_pass(work, device)
        speed_up = speed_ups[self.name, scale.text]
        efficiency = efficiencies.get((self.name, scale.text))
        return ScalePoint(
            work,
            scale,
            _estimate(speed_up),
            speed_up.verdict.value,
            None if efficiency is None else _estimate(efficiency),
            "" if efficiency is None else efficiency.verdict.value,
            no_efficiency=no_efficiency,
        )

    def _of_one_pass(self, work: Work, device: str) -> ScalePoint:
        """Nothing was repeated: figures without intervals, and no verdict."""
        scale, why = work.scale, self.no_efficiency(device)
        assert scale is not None
        speed_up = self.times_ns(self.smallest)[0] / self.times_ns(scale)[0]
        efficiency = None if why else Estimate(speed_up / self.resources(scale, device))
        undecided = verdict.Verdict.INCONCLUSIVE.value
        return ScalePoint(work, scale, Estimate(speed_up), undecided, efficiency, "" if why else undecided, "", why)


def _why_not(found: ContestantResult | None) -> str:
    if found is None:
        return "it was not raced"
    return "" if found.ranked else found.trouble


def _judged(measured: Sequence[_Measured], metric: verdict.Metric, device: str) -> _Comparisons:
    """By table and scale, how it compares with the smallest scale."""
    by_name = {each.name: each for each in measured}
    tables = [table for each in measured if (table := each.table(metric, device)) is not None]
    found = {}
    for each in verdict.judge(tables) if tables else ():
        smallest = by_name[each.workload].smallest.text
        if smallest in (each.a, each.b):
            own = each if each.b == smallest else each.reversed()
            found[own.workload, own.a] = own
    return found


def _estimate(comparison: verdict.Comparison) -> Estimate:
    return Estimate.bounded(comparison.ratio, comparison.interval.low, comparison.interval.high)
