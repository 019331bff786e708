"""The messages of the latency scenario. They are the domain types: a process result holds them as they came.

A worker imports this module before it says hello, so it must stay light.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec
from msgspec import field

from fairlap.data.timed_copies import TimedCopies
from fairlap.engine.measurement import Notice, WarmUp
from fairlap.meters.energy import EnergyOfBlock
from fairlap.request.fields.device_conditions import DeviceConditions
from fairlap.scenarios.asking import MOST_RAW_BYTES, Ask, Reply

BYTES_PER_SAMPLE = 8


BEFORE = "before/"
"""In the outputs of a drawn or fed step of training: the state that it found."""


class DrawnCall(msgspec.Struct, frozen=True):
    """A timed call whose outputs are kept."""

    at: float  # the share of the measurement after which it is made
    inputs: int  # 0 and 1 are the sets that take turns, the others are unseen ones, which no call has had before


class Reading(msgspec.Struct, frozen=True):
    """What it took to turn the result of one call into arrays."""

    deferred: str = ""  # the type of a result that is still to be computed, such as a future; its outputs are not read
    read_s: float = 0.0
    copy_s: float = 0.0  # what copying the same arrays takes


_COPIES = 10
_SHORTEST_S = 1e-3


def takes_suspiciously_long(reading: Reading, call_s: float) -> bool:
    """Longer than the call itself, and far longer than copying the arrays: the work may be done in there."""
    return reading.read_s > max(call_s, _COPIES * reading.copy_s + _SHORTEST_S)


class DrawnResult(msgspec.Struct, frozen=True):
    number: int  # of the drawn call in the request
    call_ns: float
    reading: Reading = Reading()
    cpu_ns: float | None = None  # of all threads of the process during the call; None if it was not measured
    parts_ns: dict[str, float] = {}  # of a call on unseen inputs, by the quantity that has the same of the timed calls


class Drawn(msgspec.Struct, frozen=True):
    """What was found out at the drawn calls."""

    calls: tuple[DrawnResult, ...] = ()
    cores_wanted: float | None = None  # by all threads of the process during the measurement: used or waited for


class Feeding(msgspec.Struct, frozen=True):
    """The time of the fed calls, and the parts of it that were spent waiting for a batch."""

    items: int
    calls: int
    wall_ns: float
    work_ns: float
    waited_ns: float
    source_ns: float | None = None  # the causes of the wait, where the pipeline knows them
    staging_ns: float | None = None
    no_slot_ns: float | None = None
    copies: TimedCopies | None = None  # to a GPU, of calls after those; present when they were asked for


class MeasuredQuantity(msgspec.Struct, frozen=True):
    """One quantity of a measurement."""

    name: str  # wall_ns, host_issue_ns, device_span_ns, context_span_ns, kernel_sum_ns; see also generation.py
    count: int
    method: str
    resolution_ns: float
    floor: dict[str, float | None] = {}
    unit: Literal["ns"] = "ns"
    gate: str = ""  # what held the device's stream, in a span of it
    sm_mhz: float | None = None  # of a GPU: the median of its clock at the samples


class Measured(Reply, frozen=True, tag="measured"):
    """Raw samples follow: all of the first quantity in order of time, then all of the second, and so on."""

    quantities: list[MeasuredQuantity]  # the first one is the headline
    calls_per_sample: int
    stopped_by: str
    elapsed_s: float
    bytes: int
    warm_up: WarmUp | None = None
    counts: dict[str, int] = field(default_factory=dict)  # over all of it: faults, switches, migrations, CPU time
    warnings: list[Notice] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)  # by quantity, why the device could not be timed by it
    energy: EnergyOfBlock | None = None  # present when it was asked for and a sensor could be read
    feeding: Feeding | None = None  # present when the calls were fed
    drawn: Drawn = Drawn()  # empty when none were asked for
    dealt: bool = False  # model and inputs were moved before, as was asked for
    device_conditions: dict[str, str] = field(default_factory=dict)  # in force, by "cache" and "regime", if asked for

    def require_consistent(self) -> None:
        """Raise msgspec.ValidationError for numbers that contradict each other."""
        if not self.quantities or min(quantity.count for quantity in self.quantities) < 0:
            raise msgspec.ValidationError("a measurement without quantities, or with a negative count")
        expected = BYTES_PER_SAMPLE * sum(quantity.count for quantity in self.quantities)
        if self.bytes != expected or expected > MOST_RAW_BYTES:
            raise msgspec.ValidationError(f"a measurement of {self.bytes} bytes, but its counts make {expected}")
        if self.calls_per_sample < 1:
            raise msgspec.ValidationError(f"{self.calls_per_sample} calls in a sample")


_MOST_QUANTITIES = 16
_MOST_SAMPLES_PER_S = 10**8  # a sample of the engine takes several times 10 ns
_SAMPLES_ALWAYS_ALLOWED = 2**20


class Measure(Ask[Measured], frozen=True, tag="measure"):
    """Time calls on the inputs, or on the fed batches. The worker chooses what is null."""

    served_by: ClassVar[str] = "fairlap.scenarios.calls.latency:serve"

    seconds: float | None = None
    samples: int | None = None
    warmup: int | None = None
    calls_per_sample: int | None = None
    energy: Literal["read"] | None = None  # there are sensors: report their readings over the timed calls
    drawn: tuple[DrawnCall, ...] = ()  # ascending
    drawn_path: str = ""  # where their outputs go: "<number>/<output>"
    deal: int | None = None  # move the model and its inputs to other places in memory before, drawn with this seed
    on_device: DeviceConditions | None = None  # of a GPU, where others than the usual are asked for
    energy_of: str = ""  # GPUs of other ranks too, whose energy this one reads: "GPU-...,GPU-..."; its own by default

    def most_raw_bytes(self, after_s: float) -> int:
        timed = max(_SAMPLES_ALWAYS_ALLOWED, int(after_s * _MOST_SAMPLES_PER_S))
        samples = timed if self.samples is None else self.samples
        return min(MOST_RAW_BYTES, BYTES_PER_SAMPLE * _MOST_QUANTITIES * samples)


class Fed(Reply, frozen=True, tag="fed"):
    pipeline: str  # which pipeline feeds, and its settings


class Feed(Ask[Fed], frozen=True, tag="feed"):
    """Feed the measured calls from these files, and write the proof that every sample arrives."""

    served_by: ClassVar[str] = "fairlap.scenarios.calls.fed_latency:feed"

    files: dict[str, str]  # .npy, by the inputs' names; in mode "train" also "labels", where the loss has some
    samples: int
    seed: int
    path: str
    whole_batches: bool = False  # in the proof, since an item's answer may depend on its batch; else two items of each
