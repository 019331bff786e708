"""What one process left behind: its outcome, its phases, its figure, and everything counted beside."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

import msgspec

from fairlap.meters.energy import EnergyOfBlock, IdlePower
from fairlap.request.work import Conditions

Outcome = Literal[
    "finished",
    "disqualified",  # it ran, but not the same work or not as it was told to
    "unsupported",
    "failed",  # an exception, told by the worker
    "crash",
    "exit",
    "timeout",
    "out_of_memory",
    "protocol",
    "not_installed",
]


_COMPILING = ("lower", "trace", "compile")
_AFTER_THE_FIRST = ("proof", "checked_calls", "warm_up", "measured")


class AnswerError(msgspec.Struct, frozen=True):
    """How far one array of an answer lies from the float64 reference. Stored also when it is right.

    JSON has neither infinities nor NaN: a distance that cannot be told is kept as None, so that it can be read back.
    """

    what: str
    when: str  # "before", "changed inputs" or "after" the timed run
    told_cosine: float | None = msgspec.field(name="cosine")
    told_worst_absolute: float | None = msgspec.field(name="worst_absolute")
    told_relative: float | None = msgspec.field(name="relative")
    right: bool
    why: str = ""

    def __post_init__(self) -> None:
        for name in ("told_cosine", "told_worst_absolute", "told_relative"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                msgspec.structs.force_setattr(self, name, None)

    @property
    def cosine(self) -> float:
        return math.nan if self.told_cosine is None else self.told_cosine

    @property
    def worst_absolute(self) -> float:
        return math.inf if self.told_worst_absolute is None else self.told_worst_absolute

    @property
    def relative(self) -> float:
        return math.inf if self.told_relative is None else self.told_relative


class Figure(msgspec.Struct, frozen=True):
    """One process's timing of one quantity, per call, in nanoseconds."""

    p50_ns: float
    p90_ns: float
    p99_ns: float
    samples: int
    calls_per_sample: int
    steady_from: int
    course: str  # flat, warm-up, slow-down, none
    method: str
    resolution_ns: float


class SmallestMemory(msgspec.Struct, frozen=True):
    """The smallest memory in which it still ran; docs/how-to/measure-memory.md tells how it is found."""

    limit: str  # what was limited; address space is not resident memory
    bytes: int | None
    resolution_bytes: int
    tries: int
    why: str = ""  # there are no bytes


class ProcessResult(msgspec.Struct):
    """One contestant's process in one block."""

    block: int
    position: int
    contestant: str
    work: str
    conditions: Conditions
    outcome: Outcome = "finished"
    message: str = ""
    version: str = ""
    in_force: dict[str, str] = {}
    phases_s: dict[str, float] = {}  # interpreter, numpy, fairlap, import, build, compile, bind, first_call, ...
    figures: dict[str, Figure] = {}  # by quantity; the first is the headline
    errors: list[AnswerError] = []
    per_call: dict[str, float] = {}  # page faults, switches, migrations, CPU time
    machine: dict[str, float] = {}  # what the machine did while it was measured: steal, run queue, throttling
    feeding: dict[str, float] = {}  # of fed calls: items, calls, wall_ns, work_ns, waited_ns and what was waited for
    warnings: list[str] = []
    memory_bytes: dict[str, int] = {}  # by layer
    memory_absent: dict[str, str] = {}  # layers without a figure, and why
    smallest_memory: SmallestMemory | None = None  # on the last finished process of those that were tried
    energy: EnergyOfBlock | None = None
    idle_power: tuple[IdlePower, ...] = ()  # before the race's first block
    energy_absent: str = ""  # why no sensor was read
    details: str = ""  # of a lost process: its traceback, or the end of what it printed
    hash_seed: int = 0
    padding_bytes: int = 0
    cores: tuple[int, ...] = ()
    began_s: float = 0.0  # since the race began
    elapsed_s: float = 0.0

    @property
    def finished(self) -> bool:
        return self.outcome == "finished"

    @property
    def headline_ns(self) -> float:
        """The median of a call. Where it was fed, a batch's share of the whole time: batches may come in bursts, and
        then the median call is one that did not wait."""
        if self.feeding.get("calls"):
            return self.feeding["wall_ns"] / self.feeding["calls"]
        return next(iter(self.figures.values())).p50_ns

    def time_to_first_s(self) -> float | None:
        """From the start of the process to its first answer: nothing left out, compiling least of all."""
        if "first_call" not in self.phases_s:
            return None
        others = ("fairlap", *_AFTER_THE_FIRST)
        return sum(seconds for phase, seconds in self.phases_s.items() if phase not in others)

    def compiling_s(self) -> float | None:
        """None for a framework that compiles nothing ahead of its first call."""
        parts = [self.phases_s[phase] for phase in _COMPILING if phase in self.phases_s]
        return sum(parts) if parts else None

    @property
    def in_framework_s(self) -> float:
        """Import (NumPy's too, which all of them load), build, warm-up and calls."""
        return sum(seconds for phase, seconds in self.phases_s.items() if phase not in ("interpreter", "fairlap"))


def values_in_force(processes: Iterable[ProcessResult], setting: str) -> list[str]:
    """What the processes that kept this setting had it at, each value once."""
    return sorted({process.in_force[setting] for process in processes if setting in process.in_force})
