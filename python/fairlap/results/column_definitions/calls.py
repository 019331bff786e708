"""What calls take: their time and rate, what bounds them, what they waited for, and how busy they kept the machine."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec

from fairlap.results.column_definitions.about import Gauge, about
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.column_definitions.subject import Subject

_NS = 1e-9
_latency = partial(about, group="latency")
_generation = partial(about, group="generation")
_bound = partial(about, group="bound")
_feeding = partial(about, group="feeding")
_utilisation = partial(about, group="utilisation")


class ModeOfProcesses(msgspec.Struct, frozen=True):
    """Where processes fall into groups, one group."""

    value_ns: float
    share: float


class Calls(Subject, frozen=True, kw_only=True):
    reported_ns: Annotated[
        Estimate | None,
        _latency(
            "Median time in the program's own report, which ranks it with --reported.",
            gauge=Gauge("reported", "seconds", "Median time that the program reports of its work.", _NS),
        ),
    ]
    reported_by: Annotated[
        str, _latency("The format of that report, and the benchmark in it if one was named; else empty.")
    ]
    latency_p50_ns: Annotated[
        Estimate | None,
        _latency(
            "Median time of a call, over processes.",
            gauge=Gauge("latency_p50", "seconds", "Median time of a call.", _NS),
        ),
    ]
    latency_p90_ns: Annotated[Estimate | None, _latency("90th percentile of the time of a call.")]
    latency_p99_ns: Annotated[
        Estimate | None,
        _latency(
            "99th percentile of the time of a call.",
            gauge=Gauge("latency_p99", "seconds", "99 of 100 calls are quicker.", _NS),
        ),
    ]
    modes: Annotated[
        list[ModeOfProcesses], _latency("Groups of processes with nothing between them; empty if there is one group.")
    ]
    method: Annotated[str | None, _latency("How the latency was measured.")]
    resolution_ns: Annotated[float | None, _latency("The smallest difference that the method resolves.")]
    host_issue_ns: Annotated[Estimate | None, _latency("From the call being entered to its return.")]
    device_span_ns: Annotated[Estimate | None, _latency("From event to event on the device's stream.")]
    context_span_ns: Annotated[
        Estimate | None, _latency("From event to event over all streams of the device, the wait included.")
    ]
    kernel_sum_ns: Annotated[Estimate | None, _latency("Time of the kernels, from activity records.")]
    device_method: Annotated[str | None, _latency("How the device was timed, on which stream and how that was found.")]
    device_cache: Annotated[
        str | None, _latency("How the L2 cache of the GPU was made cold before each call; warm otherwise.")
    ]
    device_regime: Annotated[
        str | None,
        _latency("Whether the GPU had rested before the measurement, or been loaded, and to which clock."),
    ]
    throughput_per_s: Annotated[
        Estimate | None,
        _latency(
            "Items in a second; in a fed race with all that feeding takes, else call after call.",
            gauge=Gauge("throughput_items_per_second", "", "Items in a second."),
        ),
    ]

    time_to_first_token_ns: Annotated[
        Estimate | None,
        _generation("From the call of a whole answer to its first token on the host: reading the prompt."),
    ]
    time_per_output_token_ns: Annotated[
        Estimate | None, _generation("Mean time of a token after the first one, the median over answers.")
    ]
    token_gap_p99_ns: Annotated[Estimate | None, _generation("99th percentile of the time from one token to the next.")]
    tokens_per_s: Annotated[
        Estimate | None,
        _generation("Tokens of all items of a call over the time of the whole answer, the prompt included."),
    ]
    tokens_per_prompt_per_s: Annotated[
        Estimate | None,
        _generation("The same for each prompt of a call, as its own reader sees it."),
    ]

    operations_per_call: Annotated[
        float | None,
        _bound("Additions and multiplications of a call, as its model counts them; of a gradient three times as many."),
    ]
    bytes_per_call: Annotated[
        float | None, _bound("Bytes that a call has to move: weights, inputs and outputs, each once.")
    ]
    operations_per_byte: Annotated[float | None, _bound("Arithmetic intensity: the one over the other.")]
    gflop_per_s: Annotated[Estimate | None, _bound("Thousand million operations in a second, achieved.")]
    overhead_ns: Annotated[
        float | None, _bound("Median time of a call of this contestant that has next to nothing to compute.")
    ]
    roof: Annotated[
        str | None,
        _bound("The nearer roof: of a number type, such as fp32, or of the level of memory that holds the data."),
    ]
    roof_instructions: Annotated[
        str | None, _bound("Of a number type: the instructions with which this roof was measured, such as AMX BF16.")
    ]
    roof_share: Annotated[float | None, _bound("How much of this roof it reached.")]
    bound: Annotated[str | None, _bound("What bounds it: compute-bound, memory-bound or overhead-bound.")]
    bound_evidence: Annotated[
        str | None, _bound("Time of a call, and the least times by arithmetic, memory and overhead.")
    ]

    pipeline_throughput_per_s: Annotated[
        Estimate | None, _feeding("Items in a second with all that feeding takes, over the whole time.")
    ]
    waited_share: Annotated[
        Estimate | None,
        _feeding("How much of the time was waited for batches, in the process in the middle by this share."),
    ]
    stall_shares: Annotated[
        dict[str, float],
        _feeding("That process's time by what it went into: work, and what was waited for. They add up to 1."),
    ]

    copies_hidden_share: Annotated[
        Estimate | None,
        _feeding(
            "How much of the time of the copies to a GPU was behind the device's work on other batches, by events, in "
            "calls after the timed ones."
        ),
    ]

    cpu_time_ns: Annotated[
        Estimate | None,
        _utilisation(
            "CPU time of a call on all threads; of a command, the median of its runs, with the children that it waited "
            "for."
        ),
    ]
    cpu_busy_share: Annotated[
        Estimate | None,
        _utilisation("CPU time of its process over the time of its calls times the threads it was given."),
    ]
    gpu_busy_share: Annotated[
        Estimate | None,
        _utilisation(
            "Share of the time in which a kernel ran on the device, by NVML's samples; of several GPUs the mean."
        ),
    ]
    gpu_sm_mhz: Annotated[
        dict[str, float],
        _utilisation(
            "Clock of the GPU's multiprocessors before the first turn of its processes, while calls were timed, and "
            "after the last turn: start, measured and end, medians. Of several GPUs these and the next three are of "
            "each, by its name: `cuda:1 start`."
        ),
    ]
    gpu_temperature_c: Annotated[dict[str, float], _utilisation("The GPU's temperature before and after.")]
    gpu_power_w: Annotated[dict[str, float], _utilisation("The GPU's power before and after.")]
    gpu_memory_bytes: Annotated[
        dict[str, float], _utilisation("Memory of the GPU in use by all processes, before and after.")
    ]
