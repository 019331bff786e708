"""A run that was disturbed has the warning that says so, with its figure; a quiet run has none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fairlap.engine import _native
from fairlap.engine.cuda.notices import notices_of_stream
from fairlap.engine.cuda.request import Rotate
from fairlap.engine.notices import notices_of_run

SAMPLES = 100
SMALL_ROTATION = Rotate([(np.zeros(1),), (np.zeros(1),)])
QUIET_TOTALS = {
    "process_minor_faults": 0,
    "process_major_faults": 0,
    "thread_involuntary_switches": 0,
    "migrations": 0,
}


def named(name: str) -> SimpleNamespace:
    return SimpleNamespace(name=name)


def codes_of_run(
    *, totals: dict[str, int] | None = None, trusted: bool = True, python_threads: int = 1, **changed: Any
) -> dict[str, str]:
    times_ns = memoryview(bytearray(8 * SAMPLES)).cast("d")
    for place in range(SAMPLES):
        times_ns[place] = 1000.0
    record = {
        "samples": SAMPLES,
        "calls_per_sample": 1,
        "wall_ns": times_ns,
        "backward_samples": 0,
        "clock_source_changed": False,
        "clock_check": SimpleNamespace(drift_ppm=0.0, resolution_ppm=1.0),
        "stopped_by": named("time"),
        "warm_up_kind": named("found"),
        "warm_up_settled": True,
        "warm_up_elapsed_ns": 1e9,
        "collector_came_back": False,
        "stolen_ns": 0.0,
        "elapsed_ns": 1e9,
        "groups": SimpleNamespace(totals=lambda: {**QUIET_TOTALS, **(totals or {})}),
    } | changed
    clock = SimpleNamespace(source="tsc", trusted=trusted, counter_distrust="the kernel says so", quantum_ns=1.0)
    found = notices_of_run(SimpleNamespace(**record), clock, 0.0, python_threads=python_threads)  # type: ignore[arg-type]
    return {notice.code: notice.text for notice in found}


def test_a_quiet_run_has_no_warning() -> None:
    assert codes_of_run() == {}


@pytest.mark.parametrize(
    ("code", "figure", "changed"),
    [
        ("W_CLOCK_BACKWARDS", "3 samples", {"backward_samples": 3}),
        ("W_CLOCK_SOURCE_CHANGED", "clock source", {"clock_source_changed": True}),
        ("W_CLOCK_DRIFT", "+900 ppm", {"clock_check": SimpleNamespace(drift_ppm=900.0, resolution_ppm=1.0)}),
        ("W_CLOCK_NOT_TRUSTED", "the kernel says so", {"trusted": False}),
        ("W_BUFFER_FULL", "100 places", {"stopped_by": named("full")}),
        ("W_WARM_UP_NOT_SETTLED", "after 2 s", {"warm_up_settled": False, "warm_up_elapsed_ns": 2e9}),
        ("W_MAJOR_FAULTS", "7 page faults", {"totals": {"process_major_faults": 7}}),
        ("W_PAGE_FAULTS", "5 page faults", {"totals": {"process_minor_faults": 500}}),
        ("W_STOLEN", "20 %", {"stolen_ns": 2e8}),
        ("W_PREEMPTED", "40 times", {"totals": {"thread_involuntary_switches": 40}}),
        ("W_MIGRATED", "once", {"totals": {"migrations": 1}}),
        ("W_PYTHON_THREADS", "3 Python threads", {"python_threads": 3}),
    ],
)
def test_each_disturbance_has_its_warning_with_the_figure(code: str, figure: str, changed: dict[str, Any]) -> None:
    found = codes_of_run(**changed)
    assert list(found) == [code]
    assert figure in found[code]


def codes_on_stream(*, cache: Rotate | None = None, **changed: Any) -> dict[str, str]:
    record = {
        "samples": SAMPLES,
        "valid": SAMPLES,
        "invalid": {},
        "trace_stream": None,
        "streams": {},
        "stream": "stream 7",
        "longest_tail_ns": 5000.0,
        "between_samples": 0,
        "stopped_by": named("time"),
        "error": "",
        "gate": named("host"),
        "gate_because": "",
        "halvings": 0,
        "calls_per_sample": 4,
        "cupti_was_used": False,
        "floor": {},
        "columns": {},
        "warm_up_settled": True,
        "warm_up_elapsed_ns": 1e9,
    } | changed
    request = SimpleNamespace(method="device_span", cache=cache)
    stop, warm_up = SimpleNamespace(target=0.0), SimpleNamespace(kind="found")
    found = notices_of_stream(SimpleNamespace(**record), request, stop, warm_up)  # type: ignore[arg-type]
    return {notice.code: notice.text for notice in found}


def test_a_quiet_run_on_a_stream_has_no_warning() -> None:
    assert codes_on_stream() == {}


@pytest.mark.parametrize("reason", list(_native.Invalid), ids=lambda reason: reason.name)
def test_invalid_samples_are_counted_with_their_reason(reason: _native.Invalid) -> None:
    found = codes_on_stream(invalid={reason: 12})
    assert found[f"W_{reason.name.upper()}"].startswith("12 of 100 samples")


@pytest.mark.parametrize(
    ("code", "figure", "changed"),
    [
        ("W_WORK_BETWEEN_SAMPLES", "9 kernels", {"between_samples": 9}),
        ("W_GATE", "a wait", {"stopped_by": named("gate"), "error": "a wait"}),
        ("W_TIMEOUT", "10 s", {"stopped_by": named("timeout"), "error": "the device did not finish within 10 s"}),
        ("W_CUDA_ERROR", "700", {"stopped_by": named("cuda_error"), "error": "CUDA error 700"}),
        ("W_GATE_FALLBACK", "no memory", {"gate_because": "no memory"}),
        ("W_FEWER_CALLS_PER_SAMPLE", "4 calls", {"halvings": 2}),
        ("W_OTHER_STREAMS", "9 (4 activities)", {"trace_stream": 7, "streams": {7: (1,), 9: (4,)}}),
        ("W_ROTATION_SMALL", "64 MiB", {"cache": SMALL_ROTATION, "cache_bytes": 64 << 20}),
        ("W_ROTATION_UNKNOWN", "2 sets", {"cache": Rotate([(1,), (2,)]), "cache_bytes": 64 << 20}),
        ("W_PROFILED_BEFORE", "CUPTI", {"cupti_was_used": True}),
    ],
)
def test_each_disturbance_on_a_stream_has_its_warning(code: str, figure: str, changed: dict[str, Any]) -> None:
    found = codes_on_stream(**changed)
    assert list(found) == [code]
    assert figure in found[code]
