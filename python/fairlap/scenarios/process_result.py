"""What is known of one process: its outcome, phases, timings, checks, memory, energy and counters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal, get_args

import msgspec

from fairlap.engine.measurement import Notice
from fairlap.frameworks.contract_parts.work_place import WHERE_WORK_IS, WorkIn
from fairlap.meters.allocations import Allocations
from fairlap.meters.device_slowdown import DeviceState
from fairlap.meters.energy import EnergyOfBlock, IdlePower
from fairlap.meters.memory import Memory
from fairlap.models.call_cost import CallCost
from fairlap.models.slices.slice_scores import SliceScores
from fairlap.models.task_metrics import Score
from fairlap.request.work import Conditions
from fairlap.scenarios.agents.agent_messages import AgentTimes
from fairlap.scenarios.calls.latency_messages import Feeding
from fairlap.scenarios.digits.digits_found import DigitsFound
from fairlap.scenarios.file_to_answer.stage_messages import AnswersFound
from fairlap.scenarios.learning.training_messages import LearningCurve
from fairlap.scenarios.load.load_messages import LoadFound
from fairlap.scenarios.mixed_sizes.mix_messages import MixFound
from fairlap.scenarios.passes.passes_found import PassesFound
from fairlap.scenarios.ranks.ranks_messages import RanksFound
from fairlap.scenarios.solving.work_precision import WorkPrecision
from fairlap.scenarios.streams.streams_found import StreamsFound

Outcome = Literal[
    "finished",
    "disqualified",  # it ran, but did not do the work that was asked for
    "unqualified",  # of a row: it did, with a larger error than --max-drop allows, or without reaching the score
    "unsupported",
    "failed",  # an exception in the worker
    "crash",
    "exit",
    "timeout",
    "out_of_memory",
    "protocol",
    "not_installed",
]


CompileCaches = Literal["cold", "warm"]
"""The compilers' caches on disk: empty, as at the first process of a contestant on a work; or filled by one before."""

Started = Literal["alone", "together"]

Period = Literal["turns", "after_turns"]
"""When something was measured: in the turns of timed calls, or after them, as epochs and trials are."""
PERIODS: tuple[Period, ...] = get_args(Period)

NOT_ITS_FIRST = "its process had done other works before; without --fresh each has a new one"
"""Why a quantity of the whole life of a process is absent for a later one of its works."""

_COMPILING = ("lower", "trace", "compile")
_AFTER_THE_FIRST = ("proof", "checked_calls", "warm_up", "measured")


TOKENS = "a token"
"""``AnswerError.what`` of an answer that is proven by its tokens alone."""


class AnswerError(msgspec.Struct, frozen=True):
    """How far one array of an answer is from the float64 reference; stored also when the array is right.

    JSON has neither infinities nor NaN: a distance that is not finite is stored as None.
    """

    what: str
    when: str  # "before", "changed inputs", "timed call" or "after"
    cosine: float | None
    worst_absolute: float | None
    relative: float | None
    right: bool
    why: str = ""

    def __post_init__(self) -> None:
        for name in ("cosine", "worst_absolute", "relative"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                msgspec.structs.force_setattr(self, name, None)

    @property
    def has_distance(self) -> bool:
        """Whether it was compared number by number; tokens are right or wrong."""
        return self.what != TOKENS

    @property
    def distance(self) -> float:
        """The relative error; infinite where it is not finite."""
        return math.inf if self.relative is None else self.relative


class Timing(msgspec.Struct, frozen=True):
    """Percentiles of one quantity over one process's calls, in nanoseconds."""

    p50_ns: float
    p90_ns: float
    p99_ns: float
    samples: int
    calls_per_sample: int
    steady_from: int
    course: str  # flat, warm-up, slow-down, none
    method: str
    resolution_ns: float
    gate: str = ""  # what held the device's stream, in a span of it; "none" leaves launch gaps in it
    sm_mhz: float | None = None  # of a GPU: the median of its clock at the samples


class SmallestMemory(msgspec.Struct, frozen=True):
    """The smallest memory in which the contestant still ran; docs/how-to/measure-memory.md explains the search."""

    limit: str  # what was limited; address space is not resident memory
    bytes: int | None
    resolution_bytes: int
    tries: int
    why: str = ""  # why no limit was found


BatchOutcome = Literal["fits", "out_of_memory", "refused", "budget"]


class BatchTry(msgspec.Struct, frozen=True):
    """One fresh process at one batch."""

    batch: int
    outcome: BatchOutcome
    peak_bytes: int | None = None
    ns_per_item: float | None = None
    why: str = ""  # it does not fit


class LargestBatch(msgspec.Struct, frozen=True):
    """The largest batch that fits into memory; docs/how-to/find-the-largest-batch.md explains the search."""

    batch: int | None
    resolution: int = 0  # a batch larger by this does not fit, unless nothing larger was tried
    ended_by: Literal["out_of_memory", "refused", "limit", "budget", ""] = ""  # why it is not larger
    memory: str = ""  # which memory the figures of the tries are
    limit_bytes: int | None = None  # of resident memory; None where the device's own memory is the limit
    checked: str = ""  # how the answers at this batch were checked
    tries: tuple[BatchTry, ...] = ()
    why: str = ""  # the last failure in words, or why there is no batch


class ProcessResult(msgspec.Struct):
    """One contestant's process in one block: what was drawn for it, what its worker sent, what the parent found."""

    block: int
    position: int
    contestant: str
    work_id: str
    conditions: Conditions
    outcome: Outcome = "finished"
    code: str = ""  # of an outcome other than finished
    message: str = ""
    details: str = ""  # of a lost process: its traceback, or the end of what it printed
    version: str = ""
    in_force: dict[str, str] = {}
    route: str = ""  # how a user's model got into the framework
    conversion_s: float | None = None
    phases_s: dict[str, float] = {}  # interpreter, numpy, fairlap, import, build, compile, bind, first_call, ...
    timings: dict[str, Timing] = {}  # by quantity; the first is the headline
    untimed: dict[str, str] = {}  # by quantity, why the device could not be timed by it
    errors: list[AnswerError] = []
    scores: dict[str, Score] = {}  # by metric, of the answers to the user's data
    groups: SliceScores | None = None  # of these by group of items, in one process of each contestant
    corrupted: SliceScores | None = None  # and on corrupted data, in the same one
    learning: LearningCurve | None = None  # of training to a score
    load: LoadFound | None = None  # of a race of load
    mix: MixFound | None = None  # of a race over a mix of sizes
    answers: AnswersFound | None = None  # of a race from file to answer
    passes: PassesFound | None = None  # of an input pipeline over data on disk
    work_precision: WorkPrecision | None = None  # of a solver of differential equations
    digits: DigitsFound | None = None  # of an operation on which digits are lost
    agent: AgentTimes | None = None  # of an agent that learnt to act, besides its ``learning``
    ranks: RanksFound | None = None  # where several processes shared its steps
    streams: StreamsFound | None = None  # of prompts that were sent to a server
    rounds_ns: list[float] = []  # the median call of each of its turns in the block; empty when it had one turn
    round_samples: list[int] = []  # of the headline in each of these turns; unknown in runs of before it was kept
    in_rounds_s: float = 0.0  # wall time of these turns, with what each begins with
    dealt: int = 0  # how often model and inputs were moved to other places in memory between turns
    in_turn_because: str = ""  # why the block's contestants ran one after the other
    data_seed: int = 0
    zero_weights: float | None = None  # the share of the weights that are 0
    works_before: int = 0  # that its process had done
    started: Started = "alone"
    caches: CompileCaches = "warm"
    per_call: dict[str, float] = {}  # page faults, switches, migrations, CPU time
    busy_cores: float | None = None  # CPU time of the process, by the time of its measured calls
    machine: dict[str, float] = {}  # what the machine did during the measurement: steal, run queue, throttling
    machine_after_turns: dict[str, float] = {}  # and during what followed its turns, such as epochs or trials
    device_states: list[DeviceState] = []  # of its GPU, before its first turn and after its last one
    device_conditions: dict[str, str] = {}  # of its GPU during its calls, by "cache" and "regime", if not the usual
    repeats: int = 0  # how often it was run before, while the GPU was slowed down
    feeding: Feeding | None = None
    tokens_per_call: int = 0  # of all items, where the model generates
    overlapping_per_s: float | None = None  # items in a second, where calls overlap and their times give no rate
    call_cost: CallCost | None = None  # None where it is unknown what a call computes
    overhead_ns: float | None = None  # of a call with next to nothing to compute; of one process of each contestant
    overhead_absent: str = ""  # why that is unknown, where it was asked for
    allocations: Allocations | None = None  # in a call, where they were counted
    allocations_absent: str = ""  # why that is unknown, where it was asked for
    warnings: list[Notice] = []
    memory: Memory = Memory()
    smallest_memory: SmallestMemory | None = None  # with the last finished process of the contestant
    largest_batch: LargestBatch | None = None  # with the same one
    energy: EnergyOfBlock | None = None
    idle_power: tuple[IdlePower, ...] = ()  # before the race's first block
    energy_absent: str = ""  # why no sensor was read
    hash_seed: int = 0
    padding_bytes: int = 0
    cores: tuple[int, ...] = ()
    began_s: float = 0.0  # since the race began
    elapsed_s: float = 0.0
    work_in: WorkIn = "worker"  # the process that did the work of its calls

    def readings(self, period: Period) -> Mapping[str, float]:
        """Read what the machine did then. Runs from before both periods were read have that of the turns for both."""
        return (self.machine_after_turns if period == "after_turns" else {}) or self.machine

    @property
    def elsewhere(self) -> str:
        """Why what was measured of its process is not of its work; empty where it is."""
        return WHERE_WORK_IS[self.work_in]

    @property
    def finished(self) -> bool:
        return self.outcome == "finished"

    @property
    def headline(self) -> Timing:
        return next(iter(self.timings.values()))

    @property
    def headline_quantity(self) -> str:
        """What the headline is the time of; only figures of the same quantity are compared."""
        return next(iter(self.timings))

    @property
    def calls(self) -> Timing:
        """Of its calls by the clock: the headline, unless that is what the program itself reported."""
        return self.timings.get("wall_ns", self.headline)

    @property
    def call_ns(self) -> float:
        """Of a call by the clock, as ``headline_ns``."""
        return self.headline_ns if self.calls is self.headline else self.calls.p50_ns

    @property
    def headline_ns(self) -> float:
        """The median of a call, or for fed calls a batch's share of the whole time.

        Batches may come in bursts, and then the median call is one that did not wait.
        """
        if self.feeding is not None and self.feeding.calls:
            return self.feeding.wall_ns / self.feeding.calls
        return self.headline.p50_ns

    def batch_ns(self, batch: int) -> float:
        """Of a call; where calls overlap, the time in which as many items are answered."""
        return self.call_ns if self.overlapping_per_s is None else batch / self.overlapping_per_s * 1e9

    def items_per_s(self, batch: int) -> float:
        return batch / self.batch_ns(batch) * 1e9

    @property
    def cpu_time_ns(self) -> float | None:
        """Of a call on all threads; where each call starts a program, the median of its runs. None if not counted."""
        of_runs = self.timings.get("cpu_time_ns")
        if of_runs is not None:
            return of_runs.p50_ns or None
        return None if self.elsewhere else self.per_call.get("process_cpu_ns") or None

    @property
    def time_to_score_s(self) -> float | None:
        """In steps; None where it was not trained to a score, or did not reach it."""
        reached = None if self.learning is None else self.learning.reached
        return None if reached is None else reached.trained_s

    def time_to_first_s(self) -> float | None:
        """From the start of the process to its first answer, compilation included."""
        if "first_call" not in self.phases_s or self.started != "alone" or self.works_before:
            return None
        others = ("fairlap", *_AFTER_THE_FIRST)
        return sum(seconds for phase, seconds in self.phases_s.items() if phase not in others)

    def compile_s(self) -> float | None:
        """None for a framework that compiles nothing ahead of its first call."""
        parts = [self.phases_s[phase] for phase in _COMPILING if phase in self.phases_s]
        return sum(parts) if parts and self.started == "alone" and not self.works_before else None

    @property
    def in_framework_s(self) -> float:
        """Import (with NumPy, which all of them load), build, warm-up and calls."""
        return sum(seconds for phase, seconds in self.phases_s.items() if phase not in ("interpreter", "fairlap"))


def checked(processes: list[ProcessResult]) -> list[ProcessResult]:
    """Refuse processes that a file says have finished without having any times; no race writes such."""
    for each in processes:
        if each.finished and not each.timings:
            raise msgspec.ValidationError(
                f"the process of {each.contestant} in block {each.block} finished without any times"
            )
    return processes


def values_in_force(processes: Iterable[ProcessResult], setting: str) -> list[str]:
    """Each value that the setting had in these processes, once."""
    return sorted({process.in_force[setting] for process in processes if setting in process.in_force})
