"""The scenario of calls: inference, gradients and training steps, on inputs that stay or are fed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

from fairlap import verdict
from fairlap.request.names import REPORTED, REPORTED_VALUE, UNIT, VALUE
from fairlap.request.work import Work
from fairlap.scenarios.added import JudgedBefore
from fairlap.scenarios.contract import Asked, Judged, Processes, Ruling, Scenario, Unit
from fairlap.scenarios.process_result import ProcessResult

TIME_OF_A_CALL = "median time of a call"
TIME_OF_A_FED_BATCH = "time of a fed batch"


class Calls(Scenario):
    race_side = "fairlap.scenarios.calls.race.from_request:CallsFromRequest"
    render_side = "fairlap.scenarios.calls.render.shown:CallsShown"
    times_of_a_batch = (TIME_OF_A_CALL, TIME_OF_A_FED_BATCH)
    judged_before: ClassVar[tuple[JudgedBefore, ...]] = (
        JudgedBefore(
            "reported_ns", "ns", lambda cells, _counted: time_reported_by(cells["reported_by"]), ("reported_by",)
        ),
        JudgedBefore("pipeline_throughput_per_s", "1/s", lambda _cells, _counted: TIME_OF_A_FED_BATCH, of_items=True),
        JudgedBefore("latency_p50_ns", "ns", lambda _cells, _counted: TIME_OF_A_CALL),
    )

    def is_asked(self, asked: Asked, work: Work) -> bool:
        return True

    def may_share_process(self, work: Work) -> bool:
        """Training keeps a state, and ranks end together."""
        return work.training is None and (work.scale is None or not (work.scale.ranks > 1 or work.scale.hosts))

    def judge(self, asked: Asked, work: Work, processes: Processes, ranked: Collection[str]) -> Ruling:
        return Ruling(judged_calls([each for own in processes.values() for each in own]))


def judged_calls(processes: Sequence[ProcessResult]) -> Judged:
    """Judge their calls by the headline: the time by the clock, or what the program itself reports."""
    timed = next((each for each in processes if each.timings), None)
    quantity = "wall_ns" if timed is None else timed.headline_quantity
    if timed is not None and quantity == REPORTED_VALUE:
        return _judged_value(timed.in_force[VALUE], timed.in_force[UNIT])
    if timed is not None and timed.feeding is not None and timed.feeding.calls:
        by = TIME_OF_A_FED_BATCH
    elif timed is not None and REPORTED in timed.in_force:
        by = time_reported_by(timed.in_force[REPORTED])
    else:
        by = TIME_OF_A_CALL if quantity == "wall_ns" else f"median {quantity} of a call"  # of an older fairlap
    metric = verdict.METRICS_OF_CALLS.get(quantity, verdict.LATENCY)
    return Judged(by, metric, _headline_ns, of_rounds=True, is_named=by != TIME_OF_A_CALL)


def _judged_value(by: str, given_unit: str) -> Judged:
    """Judge a value that is no time, such as bytes, of which less is better."""
    unit: Unit = "B" if given_unit == "bytes" else "1"
    return Judged(by, verdict.Metric(by, unit, is_speed=False), _headline_ns, unit, of_rounds=True)


def time_reported_by(format_: str) -> str:
    return f"time reported by {format_}"


def _headline_ns(process: ProcessResult) -> float | None:
    return process.headline_ns if process.timings else None
