"""What a reader should know about a run on a stream, from its record. Each rule is one small function."""

from __future__ import annotations

from dataclasses import dataclass

from fairlap import quantity_text
from fairlap.engine import _native
from fairlap.engine import notices as ending_notices
from fairlap.engine.arguments import StopRule, WarmUpWish
from fairlap.engine.cuda.request import Rotate, StreamRequest
from fairlap.engine.measurement import Notice

FLOORS_TO_BE_CLEAR = 2.0

ENDED_BY_THE_DEVICE = ("timeout", "gate", "cuda_error")

INVALID_BECAUSE = {
    "gate_timed_out": "the call did not return while the stream was held; it waits for the device now and then",
    "hidden_work": "work was still running after the stop event",
    "records_dropped": "CUPTI lost activity records that may belong to them",
    "no_activity": "the device did nothing in them, according to its records; is it the right device and context?",
    "span_backwards": "their stop event is older than their start event",
    "calls_were_reduced": "they were taken with more calls per sample, before the gate timed out",
}


@dataclass(frozen=True)
class _Run:
    record: _native.StreamRecord
    request: StreamRequest


def notices_of_stream(
    record: _native.StreamRecord, request: StreamRequest, stop: StopRule, warm_up: WarmUpWish
) -> tuple[Notice, ...]:
    """All warnings about one run on a stream, the most serious first."""
    run = _Run(record, request)
    found = (
        *_invalid_samples(run),
        _hidden_work(run),
        _wrong_stream(run),
        _work_between_samples(run),
        ending_notices.interrupted(record.stopped_by.name, record.samples),
        _ended_by_the_device(run),
        _gate_not_the_best(run),
        _fewer_calls(run),
        _rotation_too_small(run),
        _rotation_of_unknown_size(run),
        _near_the_floor(run),
        _profiled_before(run),
        ending_notices.few_samples(record.valid),
        ending_notices.target_not_reached(stop.target, record.stopped_by.name),
        ending_notices.buffer_full(record.stopped_by.name, record.samples),
        ending_notices.warm_up_not_settled(
            warm_up.kind, record.warm_up_settled, record.warm_up_elapsed_ns / 1e9, record.samples
        ),
    )
    return tuple(notice for notice in found if notice is not None)


def _invalid_samples(run: _Run) -> list[Notice]:
    return [
        Notice(
            f"W_{reason.name.upper()}",
            f"{count:,} of {run.record.samples:,} samples are invalid: {INVALID_BECAUSE[reason.name]}",
        )
        for reason, count in run.record.invalid.items()
    ]


def _hidden_work(run: _Run) -> Notice | None:
    if _native.Invalid.hidden_work not in run.record.invalid:
        return None
    return Notice(
        "W_WORK_ELSEWHERE",
        f"work went on for up to {quantity_text.duration(run.record.longest_tail_ns)} after the stop event on "
        f"{run.record.stream}; its stream is not known to events: method='kernel_sum' shows which it is",
    )


def _wrong_stream(run: _Run) -> Notice | None:
    handed, used = run.record.trace_stream, run.record.streams
    others = sorted(stream for stream in used if stream != handed)
    if handed is None or not others:
        return None
    listed = ", ".join(f"{stream} ({used[stream][0]:,} activities)" for stream in others)
    share = "part of the work" if handed in used else "none of the work ran on it; all"
    return Notice(
        "W_OTHER_STREAMS",
        f"the stream handed over is number {handed} in the activity records; {share} ran on {listed}",
    )


def _work_between_samples(run: _Run) -> Notice | None:
    if run.record.between_samples == 0:
        return None
    return Notice(
        "W_WORK_BETWEEN_SAMPLES",
        f"{run.record.between_samples:,} kernels or copies ran between samples and belong to none; if the framework "
        "enqueues after its call has returned, pass done=",
    )


def _ended_by_the_device(run: _Run) -> Notice | None:
    if run.record.stopped_by.name in ENDED_BY_THE_DEVICE:
        return Notice(f"W_{run.record.stopped_by.name.upper()}", run.record.error)
    return None


def _gate_not_the_best(run: _Run) -> Notice | None:
    if run.request.method != "device_span" or not run.record.gate_because:
        return None
    return Notice("W_GATE_FALLBACK", f"the gate in use is {run.record.gate.name}: {run.record.gate_because}")


def _fewer_calls(run: _Run) -> Notice | None:
    if run.record.halvings == 0:
        return None
    return Notice(
        "W_FEWER_CALLS_PER_SAMPLE",
        f"more than {run.record.calls_per_sample} calls in one sample did not return while the stream was held",
    )


def _rotation_too_small(run: _Run) -> Notice | None:
    cache = run.request.cache
    if not isinstance(cache, Rotate) or not cache.is_small_for(run.record.cache_bytes):
        return None
    return Notice(
        "W_ROTATION_SMALL",
        f"the arguments that differ from set to set are {quantity_text.size(cache.rotated_bytes())} in all, less than "
        f"three times the L2 cache of {quantity_text.size(run.record.cache_bytes)}; some calls may find it warm",
    )


def _rotation_of_unknown_size(run: _Run) -> Notice | None:
    cache = run.request.cache
    if not isinstance(cache, Rotate) or cache.bytes_known() or run.request.method == "host_issue":
        return None
    return Notice(
        "W_ROTATION_UNKNOWN",
        f"none of the {len(cache.sets)} sets of arguments has a known size, so it is not known whether calls find the "
        "L2 cache cold",
    )


def _near_the_floor(run: _Run) -> Notice | None:
    floor_ns = run.record.floor.get("empty_pair_ns", 0.0)
    column = run.record.columns.get(_native.StreamQuantity.device_span_ns)
    if column is None or run.record.valid == 0:
        return None
    median_ns = _native.quantiles(column, [0.5])[0] * run.record.calls_per_sample
    if median_ns > FLOORS_TO_BE_CLEAR * floor_ns:
        return None
    return Notice(
        "W_NEAR_THE_FLOOR",
        f"one sample spans {quantity_text.duration(median_ns)}, two events with nothing between them "
        f"{quantity_text.duration(floor_ns)}; raise calls_per_sample, or use method='kernel_sum'",
    )


def _profiled_before(run: _Run) -> Notice | None:
    if not run.record.cupti_was_used or run.request.method == "kernel_sum":
        return None
    return Notice(
        "W_PROFILED_BEFORE",
        "CUPTI was used in this process before, for records or to find a stream, and launches may cost more since; "
        "name the stream, and time in a new process",
    )
