"""A plan is data: every process that will run, in its order, with the seeds that drew it; it can be replayed."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from fairlap import quantity_text
from fairlap.printed_document import PrintedDocument
from fairlap.race.around_blocks.settings_search import SettingsSearch
from fairlap.race.planning.plan_modules import PlanModule
from fairlap.request.commands import reports_of
from fairlap.request.fields.sizes.other_inputs import OtherInputs
from fairlap.request.names import ContestantName
from fairlap.request.race_request import BEST_BUDGET_S, MAX_BATCH_BUDGET_S
from fairlap.request.work import Conditions, Fresh, Precision, Work
from fairlap.request.work_title import NOT_COMPARED, compared_with, work_title
from fairlap.scenarios.contract import Scenario, scenario_of
from fairlap.scenarios.process_result import Started
from fairlap.verdict import ERROR_RATE, Gate, RequiredChange

PLAN_FORMAT = 2
DATA_SEEDS = Scenario.data_seeds  # that take turns from block to block, where no scenario has others
MOST_PADDING_BYTES = 4096


_Limit = Annotated[float, Meta(ge=0, le=7 * 86_400)]
"""Of seconds. A plan may be another's, who would have a machine run for good."""


_Positive = Annotated[float, Meta(gt=0)]


class Limits(msgspec.Struct, frozen=True):
    """How long each part of a worker's life may take, in seconds, and how much memory it may ask for."""

    start_s: _Limit = 60.0
    prepare_s: _Limit = 900.0
    answer_s: _Limit = 300.0
    measure_s: _Limit = 600.0
    memory_bytes: int | None = None


class Measuring(msgspec.Struct, frozen=True):
    """How long a contestant is measured in each process, and in how many turns where contestants take turns.

    Later blocks may have another number of turns, each as long; see chosen_rounds.py.
    """

    seconds: _Limit = 0.4
    samples: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
    rounds: Annotated[int, Meta(ge=1, le=1_000_000)] = 10


class Block(msgspec.Struct, frozen=True):
    """Every contestant once, in a drawn order. All in a block share what was drawn."""

    number: int
    work: int  # its place in the plan's works
    conditions: Conditions
    order: tuple[int, ...]  # places in the plan's contestants
    hash_seed: int
    padding_bytes: int  # of environment, which shifts the stack (Mytkowicz and others, 2009)
    cores: tuple[int, ...]
    data_seed: int = 0  # draws weights and inputs
    # Alone, so that nothing else runs while a process imports and compiles; or side by side, which is quicker. In the
    # second block, those that took long to compile start alone all the same, to compile with full caches.
    started: Started = "alone"
    rounds: int | None = None  # chosen in the race where it is not known
    processes_of: int | None = None  # the block whose processes take this work too; None: it starts its own


class SkippedWork(msgspec.Struct, frozen=True):
    """An operation that a pattern selected and this machine does not race."""

    name: str
    why: str


class Plan(PrintedDocument, frozen=True, tag=f"fairlap.plan/{PLAN_FORMAT}"):
    contestants: tuple[ContestantName, ...]
    works: tuple[Work, ...]
    threads: int  # the most of any work; ``threads_of`` has those of one
    seed: int  # draws orders and settings of processes
    blocks: tuple[Block, ...]
    until_decided: bool = False  # ends as soon as all that was asked for is decided
    only_winner: bool = False  # only the fastest is compared with the others
    gate: Gate | None = None  # whether contestants are slower than its baseline by more than its bound is to be shown
    required: tuple[RequiredChange, ...] = ()  # of quantities besides what is judged, against the baseline of the gate
    alpha: Annotated[float, Meta(gt=0, le=ERROR_RATE)] = (
        ERROR_RATE  # of any false claim; the races of a suite share one
    )
    measuring: Measuring = Measuring()
    fresh: Fresh = "every"  # blocks in which each work has its own processes
    limits: Limits = Limits()
    device: str = "cpu"
    devices: tuple[str, ...] = ()  # of the ranks of a host, where one has several; the first one is ``device``
    lock_clocks: str = ""  # of the GPUs, for the length of the race: "base", or MHz
    count_allocations: bool = False  # in a call of each contestant, in the processes that are timed
    min_memory: bool = False  # the smallest memory of each contestant is looked for when the blocks have run
    data: str = ""  # what the measured calls are fed: nothing, "synthetic", or a path
    to_score: float | None = None  # train until this score on held-out items is reached
    most_epochs: int = 0
    max_drop: float | None = None  # the largest error against fp32 of a contestant that is ranked
    metrics: tuple[str, ...] = ()  # of what was learnt, where it is trained to a score
    profile_processes: int = 0  # of each contestant on each work, untimed, after the blocks
    max_batch: int = 0  # look for each contestant's largest batch up to this one when the blocks have run; 0: do not
    max_batch_budget_s: _Limit = MAX_BATCH_BUDGET_S  # of each of these searches
    count_evaluation: bool = False  # contestants answer held-out items too, in the time to the score
    best_budget_s: _Limit = BEST_BUDGET_S  # of the search for the best settings of one contestant
    searches: tuple[SettingsSearch, ...] = ()  # those that have run; their outcomes are in the contestants
    format: int = PLAN_FORMAT
    skipped: tuple[SkippedWork, ...] = ()
    recompile: tuple[int, ...] = ()  # batches that contestants are called at, untimed, to see what compiling did
    recompile_inputs: tuple[OtherInputs, ...] = ()  # and what else they are called on then
    sandbox: bool = False  # contestants confine themselves
    pass_env: tuple[str, ...] = ()  # names of secret variables that contestants get; the values are nowhere
    scenario_settings: dict[str, str] = msgspec.field(default_factory=dict)  # of scenarios that installed packages add
    available_cores: tuple[int, ...] = ()  # from which those of the blocks were drawn; unknown in older plans
    budget_s: _Positive | None = None  # of the race, unless it is given another one; None: the usual one, if any
    target: _Positive | None = None  # the half-width, as a share, of every interval at which the race may end
    modules: tuple[PlanModule, ...] = ()  # of the user, that it imports; unknown in older plans

    @property
    def headline(self) -> Conditions:
        """The conditions that the verdict is about; the others are shown after them."""
        controlled = any(block.conditions == "controlled" for block in self.blocks)
        return "controlled" if controlled else "as-found"

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """What its works ask of contestants, each once."""
        return tuple(dict.fromkeys(map(self.scenario, self.works)))

    @property
    def command(self) -> str:
        """The command of fairlap that races it."""
        return next((each.command for each in self.scenarios), Scenario.command)

    @property
    def budgets_s(self) -> tuple[float, float]:
        """The usual budget of a race until decided, and the longest while it has too few blocks for a claim."""
        return max((each.budgets_s for each in self.scenarios), default=Scenario.budgets_s)

    @property
    def usual_data_seeds(self) -> tuple[int, ...]:
        return next((each.data_seeds for each in self.scenarios), DATA_SEEDS)

    @property
    def in_turn_because(self) -> str:
        """Why no block of this plan is measured in rounds; empty when all are."""
        if len(self.contestants) < 2:
            return "there is one contestant"
        if self.device != "cpu":
            return "contestants hold the device's memory while they are frozen"
        if self.data:
            return "the pipelines that feed them run on while they are frozen"
        if self.measuring.samples is not None:
            return "a number of samples was asked for"
        return "" if self.measuring.rounds > 1 else "one turn was asked for"

    @property
    def data_seeds(self) -> tuple[int, ...]:
        return tuple(sorted({block.data_seed for block in self.blocks}))

    @property
    def data_seed(self) -> int:
        """The first one. A race that is fed has no other."""
        return self.data_seeds[0]

    @property
    def recompiled_on(self) -> tuple[str, ...]:
        """What contestants are called on to see what compiling does: ``7``, ``tokens=64``, ``float64``."""
        return (*map(str, self.recompile), *(each.text for each in self.recompile_inputs))

    def counted(self, done: int) -> str:
        """``5 of 24 processes``, or ``5 processes`` where the total is unknown until the race is decided."""
        return (
            quantity_text.count(done, "process")
            if self.until_decided
            else f"{done} of {quantity_text.count(self.process_count(), 'process')}"
        )

    def sharing_its_errors(self, works: int) -> Plan:
        """Give its works their part of the error rate that so many works share."""
        return msgspec.structs.replace(self, alpha=ERROR_RATE / (works / len(self.works)))

    def title_of(self, work: Work) -> str:
        """Name a work for people."""
        title = work_title(work.label, self.data, (name.framework for name in self.contestants))
        format_ = reports_of(self.contestants)
        title = f"{title} · by times of {format_}" if format_ else title
        if work.is_model:
            return title
        what = compared_with(work, self.contestants)
        if what:
            return f"{title} · answers compared with {what}"
        return f"{title} · {NOT_COMPARED}" if len(self.contestants) > 1 else title  # a single one has no ratio

    def work_with(self, work_id: str) -> Work:
        """Find the work that has this id."""
        return next(each for each in self.works if each.id == work_id)

    @property
    def precisions(self) -> tuple[Precision, ...]:
        """Of all works, each once."""
        return tuple(dict.fromkeys(precision for work in self.works for precision in work.precisions))

    def work_of(self, block: Block, place: int) -> Work:
        """Find what the contestant at this place does in this block, in its own precision and file."""
        name = self.contestants[place]
        return self.works[block.work].in_precision(name.precision).in_file(name.file)

    def scenario(self, work: Work) -> Scenario:
        """Find what this work asks of its contestants."""
        return scenario_of(self, work)

    def threads_of(self, work: Work) -> int:
        """Count the threads that every contestant gets on this work; as ranks, each of them."""
        return self.threads if work.scale is None else work.scale.threads

    def devices_of(self, work: Work) -> tuple[str, ...]:
        """List the devices of a contestant on this work: of its ranks on a host, that of the first one first."""
        on_a_host = 1 if work.scale is None else work.scale.most_on_a_host
        return self.devices[:on_a_host] or (self.device,)

    @property
    def all_devices(self) -> str:
        """Return every device that it uses: ``cuda:0,cuda:1``."""
        return ",".join(self.devices or (self.device,))

    def meeting_threads_of(self, work: Work) -> int:
        """Count those that wait for each other: of all ranks, which meet after each step."""
        return self.threads_of(work) * (1 if work.scale is None else work.scale.ranks)

    def threads_text(self, work: Work) -> str:
        """``2 threads``, and what the scenario of the work adds to that."""
        return quantity_text.count(self.threads, "thread") + self.scenario(work).threads_note(work)

    def where_text(self, work: Work) -> str:
        """Name what it runs on: ``cpu (2 threads)``. A work that is raced at several scales names its threads."""
        scenario = self.scenario(work)
        if scenario.where:
            return scenario.where
        return (
            ",".join(self.devices_of(work)) if work.scale is not None else f"{self.device} ({self.threads_text(work)})"
        )

    @property
    def threads_of_works(self) -> tuple[int, ...]:
        """Each number once, the smallest first."""
        return tuple(sorted({self.threads_of(work) for work in self.works})) or (self.threads,)

    def process_count(self) -> int:
        return sum(len(block.order) for block in self.blocks)
