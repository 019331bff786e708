"""The row: all that is known of one contestant on one work under one kind of conditions.

CSV headers, the JSON schema, the store's view, the data dictionary and the report's columns are made from this class.
A unit is the end of a name. A value that is absent is None, never 0, and ``absent`` gives the reason.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

import msgspec

from fairlap import verdict
from fairlap.engine.measurement import Notice
from fairlap.models.modes import MODES
from fairlap.models.task_metrics import Score
from fairlap.request.work import Conditions, Mode, Precision
from fairlap.scenarios.contract import Better, Unit, as_time_ns
from fairlap.scenarios.process_result import Outcome


def _about(meaning: str, group: str) -> msgspec.Meta:
    return msgspec.Meta(description=meaning, extra={"group": group})


class Estimate(msgspec.Struct, frozen=True):
    """A figure with its 95 % interval, which takes at least six processes; fewer have the figure alone."""

    value: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def bounded(cls, value: float, low: float, high: float) -> Estimate:
        """Few processes leave everything possible; from zero to infinity is no interval."""
        return cls(value, low, high) if low > 0 and math.isfinite(high) else cls(value)

    @classmethod
    def of(cls, figure: verdict.ContestantFigure) -> Estimate | None:
        """None where it has several modes."""
        if figure.value is None or figure.low is None or figure.high is None:
            return None
        return cls.bounded(figure.value, figure.low, figure.high)


def time_to_first(mode: Mode) -> str:
    """Name the column of the time to the first answer."""
    return f"time_to_first_{MODES[mode].first_answer}_s"


class ModeOfProcesses(msgspec.Struct, frozen=True):
    """Where processes fall into groups, one group."""

    value_ns: float
    share: float


class LatencyAtRate(msgspec.Struct, frozen=True):
    """Of one trial, from when requests were due; at rate 0 of requests that came one at a time."""

    block: int  # of the process that served them
    rate_per_s: float
    p50_ns: float
    p90_ns: float
    p99_ns: float
    requests: int
    first_token_p99_ns: float | None = None


class Row(msgspec.Struct, frozen=True, kw_only=True):
    run: Annotated[str, _about("The run's id, as `fairlap runs` lists it.", "run")]
    recorded_at: Annotated[str, _about("When the run began, in UTC, ISO 8601.", "run")]
    fairlap: Annotated[str, _about("The version of fairlap that measured.", "run")]
    machine: Annotated[str, _about("Fingerprint of the hardware and the operating system.", "run")]
    environment: Annotated[str, _about("Fingerprint of all that is installed and set around the contestant.", "run")]

    workload: Annotated[str, _about("The model.", "work")]
    mode: Annotated[Mode, _about("Inference, or the loss and its gradients.", "work")]
    precision: Annotated[Precision, _about("The precision that was asked of it.", "work")]
    ranked_precisions: Annotated[
        list[Precision], _about("The precisions whose contestants are ranked with each other.", "work")
    ]
    batch: Annotated[int, _about("Items in one call.", "work")]
    threads: Annotated[
        int, _about("Threads that every contestant was asked to use; `settings` has what it uses.", "work")
    ]
    ranks: Annotated[int, _about("Processes that shared each step or batch; each had these threads.", "work")]
    hosts: Annotated[list[str], _about("Hosts that the ranks were spread over; none for this machine alone.", "work")]
    scale: Annotated[str, _about("Threads, ranks and hosts in words, if the work was raced at several scales.", "work")]
    scaling: Annotated[
        str,
        _about(
            "Strong: the ranks shared one batch. Weak: each had one, and `batch` is the sum. Empty for one.", "work"
        ),
    ]
    device: Annotated[str, _about("Where the work ran.", "work")]
    data: Annotated[
        str, _about("What the calls were fed: synthetic, or a path; empty when their inputs stayed.", "work")
    ]
    train_on: Annotated[
        str, _about("The data it learns, and the share of the items; empty when no score was to be reached.", "work")
    ]
    train_on_hash: Annotated[str, _about("Hash of all items of this data; empty without any.", "work")]
    conditions: Annotated[
        Conditions, _about("Controlled: the same memory behaviour for all, cores bound. As found: untouched.", "work")
    ]

    turns: Annotated[
        str, _about("How contestants shared the machine: in rounds of short turns, or one after the other.", "work")
    ]
    data_seeds: Annotated[list[int], _about("Seeds that drew the weights and inputs of its processes.", "work")]

    contestant: Annotated[str, _about("The contestant as it was named.", "contestant")]
    framework: Annotated[str, _about("Its framework, or the program that speaks the worker protocol.", "contestant")]
    version: Annotated[str | None, _about("The version that the framework reports.", "contestant")]
    variant: Annotated[str, _about("The variant, such as compile; empty for the plain one.", "contestant")]
    division: Annotated[
        Literal["default", "best"],
        _about("Default: as it was named. Best: a search before the race chose its settings.", "contestant"),
    ]
    found_settings: Annotated[
        dict[str, str], _about("Settings that the search chose instead of the default; empty without.", "contestant")
    ]
    settings: Annotated[dict[str, str], _about("Settings in force, read back from the framework.", "contestant")]

    route: Annotated[
        str, _about("How a user's own model got into the framework; empty for a built-in model.", "contestant")
    ]

    outcome: Annotated[Outcome, _about("What became of it; the worst of its processes decides.", "outcome")]
    code: Annotated[str, _about("The code of what went wrong, such as E_CRASH; empty when nothing did.", "outcome")]
    message: Annotated[str, _about("What went wrong, in words; empty when nothing did.", "outcome")]
    place: Annotated[str | None, _about("Its place among the ranked; ties share one, as 2=.", "outcome")]
    judged: Annotated[
        Estimate | None,
        _about(
            "What it is ranked by, in `judged_unit`: the figure of its verdict, tables, charts and history.", "outcome"
        ),
    ]
    judged_by: Annotated[str, _about("What that is, such as `median time of a call` or `largest rate`.", "outcome")]
    judged_unit: Annotated[Unit, _about("The unit of `judged`.", "outcome")]
    judged_better: Annotated[Better, _about("Whether the lower or the higher figure is better.", "outcome")]

    reported_ns: Annotated[
        Estimate | None,
        _about("Median time in the program's own report, which ranks it with --reported.", "latency"),
    ]
    reported_by: Annotated[
        str, _about("The format of that report, and the benchmark in it if one was named; else empty.", "latency")
    ]
    latency_p50_ns: Annotated[Estimate | None, _about("Median time of a call, over processes.", "latency")]
    latency_p90_ns: Annotated[Estimate | None, _about("90th percentile of the time of a call.", "latency")]
    latency_p99_ns: Annotated[Estimate | None, _about("99th percentile of the time of a call.", "latency")]
    modes: Annotated[
        list[ModeOfProcesses],
        _about("Groups of processes with nothing between them; empty if there is one group.", "latency"),
    ]
    method: Annotated[str | None, _about("How the latency was measured.", "latency")]
    resolution_ns: Annotated[float | None, _about("The smallest difference that the method resolves.", "latency")]
    host_issue_ns: Annotated[Estimate | None, _about("From the call being entered to its return.", "latency")]
    device_span_ns: Annotated[Estimate | None, _about("From event to event on the device's stream.", "latency")]
    context_span_ns: Annotated[
        Estimate | None, _about("From event to event over all streams of the device, the wait included.", "latency")
    ]
    kernel_sum_ns: Annotated[Estimate | None, _about("Time of the kernels, from activity records.", "latency")]
    device_method: Annotated[
        str | None, _about("How the device was timed, on which stream and how that was found.", "latency")
    ]
    throughput_per_s: Annotated[
        Estimate | None,
        _about("Items in a second; in a fed race with all that feeding takes, else call after call.", "latency"),
    ]

    time_to_first_token_ns: Annotated[
        Estimate | None,
        _about("From the call of a whole answer to its first token on the host: reading the prompt.", "generation"),
    ]
    time_per_output_token_ns: Annotated[
        Estimate | None, _about("Mean time of a token after the first one, the median over answers.", "generation")
    ]
    token_gap_p99_ns: Annotated[
        Estimate | None, _about("99th percentile of the time from one token to the next.", "generation")
    ]
    tokens_per_s: Annotated[
        Estimate | None,
        _about("Tokens of all items of a call over the time of the whole answer, the prompt included.", "generation"),
    ]

    operations_per_call: Annotated[
        float | None,
        _about(
            "Additions and multiplications of a call, as its model counts them; of a gradient three times as many.",
            "bound",
        ),
    ]
    bytes_per_call: Annotated[
        float | None, _about("Bytes that a call has to move: weights, inputs and outputs, each once.", "bound")
    ]
    operations_per_byte: Annotated[float | None, _about("Arithmetic intensity: the one over the other.", "bound")]
    gflop_per_s: Annotated[Estimate | None, _about("Thousand million operations in a second, achieved.", "bound")]
    overhead_ns: Annotated[
        float | None, _about("Median time of a call of this contestant that has next to nothing to compute.", "bound")
    ]
    roof: Annotated[
        str | None,
        _about(
            "The nearer roof: of a number type, such as fp32, or of the level of memory that holds the data.", "bound"
        ),
    ]
    roof_share: Annotated[float | None, _about("How much of this roof it reached.", "bound")]
    bound: Annotated[
        str | None,
        _about("What bounds it: compute-bound, memory-bound or overhead-bound.", "bound"),
    ]
    bound_evidence: Annotated[
        str | None, _about("Time of a call, and the least times by arithmetic, memory and overhead.", "bound")
    ]

    pipeline_throughput_per_s: Annotated[
        Estimate | None, _about("Items in a second with all that feeding takes, over the whole time.", "feeding")
    ]
    waited_share: Annotated[
        Estimate | None,
        _about("How much of the time was waited for batches, in the process in the middle by this share.", "feeding"),
    ]
    stall_shares: Annotated[
        dict[str, float],
        _about("That process's time by what it went into: work, and what was waited for. They add up to 1.", "feeding"),
    ]

    cpu_time_ns: Annotated[
        Estimate | None,
        _about(
            "CPU time of a call on all threads; of a command, the median of its runs, with the children that it waited "
            "for.",
            "utilisation",
        ),
    ]
    cpu_busy_share: Annotated[
        Estimate | None,
        _about("CPU time of its process over the time of its calls times the threads it was given.", "utilisation"),
    ]
    gpu_busy_share: Annotated[
        Estimate | None,
        _about("Share of the time in which a kernel ran on the device, by NVML's samples.", "utilisation"),
    ]

    import_s: Annotated[Estimate | None, _about("Importing the framework.", "phases")]
    conversion_s: Annotated[
        Estimate | None, _about("Converting a user's own model for the framework, where it was converted.", "phases")
    ]
    build_s: Annotated[Estimate | None, _about("Building the model from its weights.", "phases")]
    compile_cold_s: Annotated[
        Estimate | None,
        _about("Tracing, lowering and compiling ahead of the first call, with empty caches on disk.", "phases"),
    ]
    compile_warm_s: Annotated[
        Estimate | None, _about("The same with the caches that an earlier process of the race filled.", "phases")
    ]
    time_to_first_inference_s: Annotated[
        Estimate | None, _about("From the start of the process to its first answer.", "phases")
    ]
    time_to_first_gradient_s: Annotated[
        Estimate | None, _about("From the start of the process to its first gradient.", "phases")
    ]

    graphs: Annotated[
        int | None, _about("Graphs, traces or programs that its compiler made of the model.", "compilation")
    ]
    graph_breaks: Annotated[
        int | None, _about("Places where the compiler left the rest of the function to Python.", "compilation")
    ]
    operators_before: Annotated[int | None, _about("Operators that its compiler was given.", "compilation")]
    kernels_after: Annotated[int | None, _about("Kernels that a call of the compiled model starts.", "compilation")]
    operators_counted: Annotated[
        str | None, _about("What these two count; another framework counts other things.", "compilation")
    ]
    recompile_stall_s: Annotated[
        dict[str, float],
        _about(
            "How much longer the first call at another batch, size or type took than later ones; building again "
            "included.",
            "compilation",
        ),
    ]
    recompile_absent: Annotated[dict[str, str], _about("Those without such a figure, and why.", "compilation")]

    peak_memory_bytes: Annotated[
        Estimate | None,
        _about(
            "The most that the process held at once, of the two peaks that follow; of a command, what the largest "
            "process of a run held, the median of its runs.",
            "memory",
        ),
    ]
    peak_memory_until_ready_bytes: Annotated[
        Estimate | None, _about("The most that it held from its start to its first answer.", "memory")
    ]
    peak_memory_while_running_bytes: Annotated[
        Estimate | None, _about("The most that it held while it was warmed up and timed.", "memory")
    ]
    memory_bytes: Annotated[
        dict[str, float],
        _about("Memory by layer: resident by kind, children, allocator, driver; median of processes.", "memory"),
    ]
    memory_absent: Annotated[dict[str, str], _about("Layers of memory without a figure, and why.", "memory")]

    min_memory_bytes: Annotated[
        float | None, _about("The smallest limit under which it still ran, and ran once more.", "memory")
    ]
    min_memory_resolution_bytes: Annotated[
        float | None, _about("A limit smaller by this was not found to do.", "memory")
    ]
    min_memory_limit: Annotated[
        str | None,
        _about(
            "What was limited: a control group, address space (not resident memory), or its own pool.",
            "memory",
        ),
    ]
    min_memory_tries: Annotated[int | None, _about("Fresh processes that were tried for it.", "memory")]

    largest_batch: Annotated[
        int | None, _about("The largest batch that was found to fit into the memory that it may use.", "memory")
    ]
    largest_batch_resolution: Annotated[int | None, _about("A batch larger by this was not found to fit.", "memory")]
    largest_batch_ended_by: Annotated[
        str | None,
        _about("Why it is not larger: out_of_memory, refused, limit (the largest to try), or budget.", "memory"),
    ]
    largest_batch_memory_limit_bytes: Annotated[
        float | None, _about("The resident memory that it was allowed in this search.", "memory")
    ]
    largest_batch_check: Annotated[str | None, _about("How the answers at this batch were checked.", "memory")]
    memory_by_batch: Annotated[
        dict[str, float], _about("Peak memory in bytes at each batch that was tried and fitted.", "memory")
    ]
    time_per_item_by_batch_ns: Annotated[
        dict[str, float], _about("Time of one item at the same batches, the median of three calls.", "memory")
    ]

    energy_per_item_j: Annotated[
        Estimate | None,
        _about("Energy for one item, by all sensors together; idle power included.", "energy"),
    ]
    idle_energy_per_item_j: Annotated[
        Estimate | None, _about("What the idle machine would have drawn in the time of one item.", "energy")
    ]
    mean_power_w: Annotated[Estimate | None, _about("Mean power while it was measured.", "energy")]
    peak_power_w: Annotated[
        Estimate | None,
        _about("Highest power while it was measured: the sum of each sensor's peak, which may fall apart.", "energy"),
    ]
    idle_power_w: Annotated[Estimate | None, _about("Power of the idle machine, before the first block.", "energy")]
    energy_by_sensor_j: Annotated[
        dict[str, float],
        _about("Energy for one item by each sensor that every process resolved, by the rule of the sum.", "energy"),
    ]

    cost_per_1000_items: Annotated[Estimate | None, _about("Money for a thousand items at the given price.", "cost")]
    currency: Annotated[str | None, _about("Of the cost.", "cost")]

    answers: Annotated[
        str,
        _about(
            "What they agree with: `agree with the reference`, with `my_kernels:reference`, or with `each other`; or "
            "`answers not compared`. Empty where the contestant gave none.",
            "accuracy",
        ),
    ]
    error_relative: Annotated[float | None, _about("Worst distance from the reference, relative.", "accuracy")]
    error_absolute: Annotated[float | None, _about("Worst distance of any one element.", "accuracy")]
    error_drop: Annotated[
        float | None,
        _about("How much larger its relative error is than the smallest one in fp32 on the same work.", "accuracy"),
    ]
    accuracy_drop: Annotated[
        float | None,
        _about("How much lower its score is than the best one in fp32 on the same work.", "accuracy"),
    ]
    zero_weights: Annotated[
        float | None, _about("Share of the model's weights that are 0, as pruning leaves them.", "accuracy")
    ]
    accuracy: Annotated[
        Estimate | None,
        _about(
            "The metric top1: share of right answers, with its interval over the items; of training, over processes.",
            "accuracy",
        ),
    ]
    scores: Annotated[
        dict[str, Score],
        _about(
            "Every metric of the answers to the user's data, or of what was learnt, with its interval and how that was "
            "found.",
            "accuracy",
        ),
    ]

    target_score: Annotated[
        float | None,
        _about(
            "The score to be reached: the share of held-out items answered rightly; of values R squared.", "learning"
        ),
    ]
    time_to_score_s: Annotated[
        Estimate | None,
        _about(
            "Time in steps, and in evaluation that counts, until it was reached; the median over processes.", "learning"
        ),
    ]
    evaluation_to_score_s: Annotated[
        Estimate | None,
        _about("Part of time_to_score_s in which it answered held-out items, where evaluation counts.", "learning"),
    ]
    energy_to_score_j: Annotated[
        Estimate | None,
        _about("Energy in time_to_score_s, by all sensors; idle power included.", "learning"),
    ]
    steps_to_score: Annotated[float | None, _about("Steps until it was reached, the median.", "learning")]
    step_in_epochs_ns: Annotated[
        Estimate | None,
        _about("Time of a step in the epochs, the mean over all of them; the median over processes.", "learning"),
    ]
    reached_share: Annotated[float | None, _about("Share of processes that reached it.", "learning")]
    best_score: Annotated[float | None, _about("The best score that any process reached.", "learning")]
    cost_to_score: Annotated[Estimate | None, _about("Money for time_to_score_s, at the given price.", "learning")]

    load: Annotated[
        str,
        _about(
            "The bounds on the latency of requests and of their first token, and how they were served; empty without "
            "load.",
            "load",
        ),
    ]
    largest_rate_per_s: Annotated[
        Estimate | None, _about("The largest rate of random arrivals that was found to meet the bound.", "load")
    ]
    largest_rate_limited_by: Annotated[
        str | None,
        _about(
            "What ended the search: bound, first token (its bound), capacity (the bound holds up to it), lone request "
            "or no rate (nothing meets it), budget; where processes with a rate differ, each with their number.",
            "load",
        ),
    ]
    capacity_per_s: Annotated[Estimate | None, _about("Requests in a second when some are always waiting.", "load")]
    latency_at_largest_rate_p50_ns: Annotated[
        Estimate | None, _about("Median latency of a request at this rate, from when it was due.", "load")
    ]
    latency_at_largest_rate_p90_ns: Annotated[Estimate | None, _about("90th percentile of this latency.", "load")]
    latency_at_largest_rate_p99_ns: Annotated[Estimate | None, _about("99th percentile of this latency.", "load")]
    issue_lateness_p99_ns: Annotated[
        Estimate | None,
        _about("How late requests were issued at this rate, the 99th percentile; it counts as latency.", "load"),
    ]
    mean_batch_at_largest_rate: Annotated[float | None, _about("Requests that one call served there.", "load")]
    first_token_at_largest_rate_p50_ns: Annotated[
        Estimate | None, _about("Median time to the first token there, from when the request was due.", "load")
    ]
    first_token_at_largest_rate_p99_ns: Annotated[Estimate | None, _about("99th percentile of this time.", "load")]
    output_token_at_largest_rate_p50_ns: Annotated[
        Estimate | None, _about("Mean time of a request's tokens after the first, the median request.", "load")
    ]
    output_token_at_largest_rate_p99_ns: Annotated[Estimate | None, _about("99th percentile of this time.", "load")]
    tokens_at_largest_rate_per_s: Annotated[
        Estimate | None, _about("Tokens in a second: the largest rate times those of a request.", "load")
    ]
    first_request_s: Annotated[Estimate | None, _about("The first call of a fresh process.", "load")]
    knee_rate_per_s: Annotated[
        float | None, _about("The lowest rate tried at which p99 is more than twice that of lone requests.", "load")
    ]
    loadgen: Annotated[
        str | None,
        _about("What MLPerf's LoadGen says, VALID or INVALID with its reasons, and the scenario that it ran.", "load"),
    ]
    loadgen_latency_ns: Annotated[
        Estimate | None, _about("LoadGen's figure in single-stream and multi-stream: the latency it judges.", "load")
    ]
    loadgen_rate_per_s: Annotated[
        Estimate | None, _about("LoadGen's figure in server, completed requests; in offline, samples.", "load")
    ]
    latency_by_rate: Annotated[
        list[LatencyAtRate], _about("Latency by rate, from trials of a fixed length; at rate 0 lone requests.", "load")
    ]

    speed_up: Annotated[
        Estimate | None,
        _about("How many times the items per second of the same contestant at the smallest scale.", "scaling"),
    ]
    speed_up_verdict: Annotated[
        str | None, _about("Against the smallest scale: faster, slower, equivalent or inconclusive.", "scaling")
    ]
    efficiency: Annotated[
        Estimate | None,
        _about("Its speed-up over a linear one: by how many more threads times ranks it has.", "scaling"),
    ]
    efficiency_verdict: Annotated[
        str | None, _about("Against linear: slower, equivalent, faster or inconclusive.", "scaling")
    ]
    exchange_ns: Annotated[
        Estimate | None,
        _about("What exchanging between ranks adds to a step: it, less that of the slowest rank alone.", "scaling"),
    ]
    exchange_share: Annotated[Estimate | None, _about("How much of a step that is.", "scaling")]
    straggler: Annotated[
        str | None, _about("A rank that the others wait for: 10 % slower alone, by an interval above 0.", "scaling")
    ]
    slowest_rank_excess: Annotated[
        Estimate | None,
        _about("How much longer the slowest rank takes alone than the others, as a share of them.", "scaling"),
    ]
    largest_rank_memory_bytes: Annotated[
        Estimate | None, _about("The most that any one of its ranks held at once.", "scaling")
    ]
    energy_per_item_and_rank_j: Annotated[
        Estimate | None,
        _about("Energy for one item, as the machine's sensors saw it, over the number of ranks.", "scaling"),
    ]

    scenario_figures: Annotated[
        dict[str, Estimate],
        _about("Figures that a scenario of an installed package adds; a unit is the end of a name.", "scenario"),
    ]
    scenario_absent: Annotated[dict[str, str], _about("Such figures that are absent, and why.", "scenario")]

    baseline: Annotated[str | None, _about("The contestant that it is compared with.", "verdict")]
    ratio: Annotated[
        Estimate | None,
        _about("How many times as long it takes as the baseline, from the blocks they shared.", "verdict"),
    ]
    verdict: Annotated[str | None, _about("Faster, slower, equivalent or inconclusive.", "verdict")]
    detectable_effect: Annotated[float | None, _about("Minimum detectable effect at 80 % power.", "verdict")]
    needed_blocks: Annotated[
        int | None,
        _about(
            "Blocks, about, that would decide an inconclusive verdict: that would show the ratio as it is.", "verdict"
        ),
    ]
    order_depends_on_data: Annotated[
        str | None,
        _about("Yes, if one data seed puts two contestants in another order than another; or no.", "verdict"),
    ]
    blocks_kept: Annotated[int, _about("Blocks that the verdict rests on.", "verdict")]
    blocks_dropped: Annotated[int, _about("Blocks left out as noisy, blind to who ran.", "verdict")]
    processes: Annotated[int, _about("Processes started for it.", "verdict")]
    processes_finished: Annotated[int, _about("Those that did the whole work.", "verdict")]

    warnings: Annotated[
        list[Notice], _about("What to know before trusting these values, each with its code.", "warnings")
    ]
    absent: Annotated[dict[str, str], _about("Why a value is absent, by the column's name.", "warnings")]

    def __post_init__(self) -> None:
        missing = {name for name in self.__struct_fields__ if getattr(self, name) is None}
        if missing != set(self.absent):
            unsaid, needless = sorted(missing - set(self.absent)), sorted(set(self.absent) - missing)
            raise ValueError(f"absent without a reason: {unsaid}; a reason but not absent: {needless}")


def time_ns(found: Estimate, unit: Unit) -> Estimate:
    """As figures are compared: of a rate the time of one."""
    ends = [None if end is None else as_time_ns(end, unit) for end in (found.low, found.high)]
    low, high = reversed(ends) if unit == "1/s" else ends
    return Estimate(as_time_ns(found.value, unit), low, high)


def judged_time_ns(row: Row) -> Estimate | None:
    return None if row.judged is None else time_ns(row.judged, row.judged_unit)
