"""What was counted beside the samples, per call, under names that stay."""

from __future__ import annotations

from fairlap.engine import Measurement

_NAMES = {
    "process_minor_faults": "page_faults",
    "process_major_faults": "major_faults",
    "process_voluntary_switches": "voluntary_switches",
    "process_involuntary_switches": "involuntary_switches",
    "migrations": "migrations",
    "thread_cpu_ns": "thread_cpu_ns",
    "process_cpu_ns": "process_cpu_ns",
}


def counts_per_call(result: Measurement) -> dict[str, float]:
    calls = max(1, result.samples * result.calls_per_sample)
    return {name: result.counts[key] / calls for key, name in _NAMES.items() if key in result.counts}
