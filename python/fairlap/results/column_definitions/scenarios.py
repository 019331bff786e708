"""What was asked of a contestant beyond calls: reaching a score, serving load, running at several scales."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec

from fairlap.results.column_definitions.about import about
from fairlap.results.column_definitions.answers import Answers
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.scenarios.process_result import CompileCaches

_learning = partial(about, group="learning")
_load = partial(about, group="load")
_mix = partial(about, group="mix")
_file = partial(about, group="from file to answer")
_scaling = partial(about, group="scaling")
_scenario = partial(about, group="scenario")


class LatencyAtRate(msgspec.Struct, frozen=True):
    """Of one trial, from when requests were due; at rate 0 of requests that came one at a time."""

    block: int  # of the process that served them
    rate_per_s: float
    p50_ns: float
    p90_ns: float
    p99_ns: float
    requests: int
    first_token_p99_ns: float | None = None


class LoadClient(msgspec.Struct, frozen=True):
    """One of several that shared the load of a server; times are medians over blocks."""

    name: str  # its host, with a number where there are several
    requests: int  # of all blocks
    core_share: float  # of a core that it used
    adds_to_first_token_ns: float | None  # itself, by its own null server; None where that is not known
    adds_to_answer_ns: float | None
    clock_offset_ns: float  # its clock less that of the process that raced, in the last block
    clock_uncertainty_ns: float  # the largest


class CallAtSize(msgspec.Struct, frozen=True):
    """The medians over processes at one size of a mix."""

    size: str  # of the dimension; ``batch=4,sequence=37`` of several
    share: float  # of the calls
    call_ns: Estimate
    first_s: float | None = None  # its first call; None where the contestant was prepared for this size
    compiled: float | None = None  # graphs that the first call compiled; None where nothing counts them


class ReadyInBlock(msgspec.Struct, frozen=True):
    """One process of a race over a mix."""

    block: int
    ready_s: float  # until it was ready for every size: its first answer, and the stalls at the other sizes
    call_ns: float
    caches: CompileCaches  # of its compiler, on disk, when it began


class StageTime(msgspec.Struct, frozen=True):
    """Of one stage from file to answer: its median time of each file, averaged over the files."""

    stage: str  # the name of its function, or "model"
    stage_ns: Estimate
    share: float  # of the time from file to answer


class Scenarios(Answers, frozen=True, kw_only=True):
    target_score: Annotated[
        float | None,
        _learning("The score to be reached: the share of held-out items answered rightly; of values R squared."),
    ]
    time_to_score_s: Annotated[
        Estimate | None,
        _learning("Time in steps, and in evaluation that counts, until it was reached; the median over processes."),
    ]
    evaluation_to_score_s: Annotated[
        Estimate | None,
        _learning("Part of time_to_score_s in which it answered held-out items, where evaluation counts."),
    ]
    energy_to_score_j: Annotated[
        Estimate | None, _learning("Energy in time_to_score_s, by all sensors; idle power included.")
    ]
    steps_to_score: Annotated[float | None, _learning("Steps until it was reached, the median.")]
    scored_every_epochs: Annotated[
        float | None,
        _learning(
            "Epochs from one score to the next: above 1 where scoring each would take longer than training. Of those "
            "in between, the first that reached the score is found by bisecting."
        ),
    ]
    step_in_epochs_ns: Annotated[
        Estimate | None,
        _learning("Time of a step in the epochs, the mean over all of them; the median over processes."),
    ]
    reached_share: Annotated[float | None, _learning("Share of processes that reached it.")]
    best_score: Annotated[float | None, _learning("The best score that any process reached.")]
    cost_to_score: Annotated[Estimate | None, _learning("Money for time_to_score_s, at the given price.")]

    load: Annotated[
        str,
        _load(
            "The bounds on the latency of requests and of their first token, and how they were served; empty without "
            "load."
        ),
    ]
    largest_rate_per_s: Annotated[
        Estimate | None, _load("The largest rate of random arrivals that was found to meet the bound.")
    ]
    largest_rate_limited_by: Annotated[
        str | None,
        _load(
            "What ended the search: bound, first token (its bound), capacity (the bound holds up to it), lone request "
            "or no rate (nothing meets it), budget; where processes with a rate differ, each with their number."
        ),
    ]
    capacity_per_s: Annotated[Estimate | None, _load("Requests in a second when some are always waiting.")]
    latency_at_largest_rate_p50_ns: Annotated[
        Estimate | None, _load("Median latency of a request at this rate, from when it was due.")
    ]
    latency_at_largest_rate_p90_ns: Annotated[Estimate | None, _load("90th percentile of this latency.")]
    latency_at_largest_rate_p99_ns: Annotated[Estimate | None, _load("99th percentile of this latency.")]
    issue_lateness_p99_ns: Annotated[
        Estimate | None, _load("How late requests were issued at this rate, the 99th percentile; it counts as latency.")
    ]
    mean_batch_at_largest_rate: Annotated[float | None, _load("Requests that one call served there.")]
    first_token_at_largest_rate_p50_ns: Annotated[
        Estimate | None, _load("Median time to the first token there, from when the request was due.")
    ]
    first_token_at_largest_rate_p99_ns: Annotated[Estimate | None, _load("99th percentile of this time.")]
    output_token_at_largest_rate_p50_ns: Annotated[
        Estimate | None, _load("Mean time of a request's tokens after the first, the median request.")
    ]
    output_token_at_largest_rate_p99_ns: Annotated[Estimate | None, _load("99th percentile of this time.")]
    tokens_at_largest_rate_per_s: Annotated[
        Estimate | None, _load("Tokens in a second: the largest rate times those of a request.")
    ]
    first_request_s: Annotated[Estimate | None, _load("The first call of a fresh process.")]
    knee_rate_per_s: Annotated[
        float | None, _load("The lowest rate tried at which p99 is more than twice that of lone requests.")
    ]
    users_per_instance: Annotated[
        Estimate | None,
        _load("Users that one instance serves: its largest rate times the sum of think and mean response time."),
    ]
    traffic_per_s: Annotated[Estimate | None, _load("How often the users of --users ask, of all instances.")]
    instances: Annotated[
        Estimate | None, _load("Instances that serve these users; its interval is of whole instances too.")
    ]
    cost_of_instances_per_hour: Annotated[
        Estimate | None, _load("Money for these instances in an hour, at the given price of one.")
    ]
    loadgen: Annotated[
        str | None,
        _load("What MLPerf's LoadGen says, VALID or INVALID with its reasons, and the scenario that it ran."),
    ]
    loadgen_latency_ns: Annotated[
        Estimate | None, _load("LoadGen's figure in single-stream and multi-stream: the latency it judges.")
    ]
    loadgen_rate_per_s: Annotated[
        Estimate | None, _load("LoadGen's figure in server, completed requests; in offline, samples.")
    ]
    latency_by_rate: Annotated[
        list[LatencyAtRate], _load("Latency by rate, from trials of a fixed length; at rate 0 lone requests.")
    ]

    load_clients: Annotated[
        list[LoadClient],
        _load("The clients that shared the load of a server, where there were several: what each adds, and its clock."),
    ]

    mix: Annotated[str, _mix("The sizes that change from call to call; empty where calls have one.")]
    mix_stalls_s: Annotated[
        Estimate | None,
        _mix("How much longer first calls at the other sizes than its first take than later ones, all of them."),
    ]
    mix_stall_share: Annotated[Estimate | None, _mix("How much of the time of these first calls that is.")]
    mix_compiled: Annotated[float | None, _mix("Graphs that were compiled for all sizes, the median over processes.")]
    mix_ready_s: Annotated[
        Estimate | None,
        _mix("From the start of a process until it is ready for every size, without converting the model."),
    ]
    mix_by_size: Annotated[list[CallAtSize], _mix("Time by size, in the order of the sizes.")]
    mix_by_block: Annotated[list[ReadyInBlock], _mix("Of each process: what a break-even is computed from.")]

    file_items: Annotated[str, _file("The files that were answered; empty where calls take arrays.")]
    file_model_ns: Annotated[
        Estimate | None,
        _file("Time of the model in an answer to a file, with handing over inputs and reading outputs."),
    ]
    file_model_share: Annotated[Estimate | None, _file("How much of the time from file to answer that is.")]
    file_answers_per_s: Annotated[Estimate | None, _file("Files answered per second, one after the other.")]
    file_overlapped_per_s: Annotated[
        Estimate | None,
        _file("The same where the stages before the model work on the next file meanwhile, on a second thread."),
    ]
    file_stages: Annotated[list[StageTime], _file("Time by stage, in their order.")]

    speed_up: Annotated[
        Estimate | None, _scaling("How many times the items per second of the same contestant at the smallest scale.")
    ]
    speed_up_verdict: Annotated[
        str | None, _scaling("Against the smallest scale: faster, slower, equivalent or inconclusive.")
    ]
    efficiency: Annotated[
        Estimate | None, _scaling("Its speed-up over a linear one: by how many more threads times ranks it has.")
    ]
    efficiency_verdict: Annotated[str | None, _scaling("Against linear: slower, equivalent, faster or inconclusive.")]
    exchange_ns: Annotated[
        Estimate | None,
        _scaling("What exchanging between ranks adds to a step: it, less that of the slowest rank alone."),
    ]
    exchange_share: Annotated[Estimate | None, _scaling("How much of a step that is.")]
    straggler: Annotated[
        str | None, _scaling("A rank that the others wait for: 10 % slower alone, by an interval above 0.")
    ]
    slowest_rank_excess: Annotated[
        Estimate | None, _scaling("How much longer the slowest rank takes alone than the others, as a share of them.")
    ]
    largest_rank_memory_bytes: Annotated[Estimate | None, _scaling("The most that any one of its ranks held at once.")]
    energy_per_item_and_rank_j: Annotated[
        Estimate | None, _scaling("Energy for one item, as the machine's sensors saw it, over the number of ranks.")
    ]

    scenario_figures: Annotated[
        dict[str, Estimate],
        _scenario("Figures that a scenario of an installed package adds; a unit is the end of a name."),
    ]
    scenario_absent: Annotated[dict[str, str], _scenario("Such figures that are absent, and why.")]
