"""What parent and worker say to each other. docs/reference/worker-protocol.md says it for people and other languages.

One JSON object on a line for each message; its "type" names it. A message with "bytes" above zero is followed by
that many raw bytes: float64, little-endian. Unknown fields are skipped, so that fields can be added.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from fairlap.meters.energy_readings import EnergyOfBlock
from fairlap.request.work import Mode, Precision

VERSION = 1
LONGEST_LINE_BYTES = 64 * 2**20
MOST_RAW_BYTES = 8 * 10**9
BYTES_OF_A_SAMPLE = 8

Which = Literal["inputs", "changed", "fed"]
FailureKind = Literal["unsupported", "exception", "out_of_memory"]


class Message(msgspec.Struct, frozen=True, tag_field="type", tag=str.lower):
    """Anything that goes through the pipes."""


class Prepare(Message, frozen=True):
    """Load one model into one framework. Files are safetensors."""

    framework: str  # a name, or "module:Class"
    workload: str  # the package that holds the model, such as "fairlap.bench_models.mlp"
    batch: int
    threads: int
    weights: str
    inputs: str
    changed: str  # inputs of the same shapes with other values
    labels: str | None = None  # a file with a tensor "labels"
    mode: Mode = "infer"
    precision: Precision = "fp32"
    variant: str = ""
    device: str = "cpu"
    options: dict[str, str] = {}
    device_memory_limit_bytes: int | None = None  # to be kept by the framework's own means


class Answer(Message, frozen=True):
    """Run one call on these inputs and write what it gives to a safetensors file."""

    which: Which
    path: str


class Feed(Message, frozen=True):
    """Feed the calls that are measured from these files, and write the proof that all of them come."""

    files: dict[str, str]  # .npy, by the inputs' names
    samples: int
    seed: int
    path: str


class Measure(Message, frozen=True):
    """Time calls on the inputs, or on what is fed. What is null is the worker's choice."""

    seconds: float | None = None
    samples: int | None = None
    warmup: int | None = None
    calls_per_sample: int | None = None
    energy: Literal["read"] | None = None  # there are sensors: say what they tell of the timed calls


class Quit(Message, frozen=True):
    """Say what memory was used, and end."""


Request = Prepare | Answer | Feed | Measure | Quit


class Hello(Message, frozen=True):
    """The first word."""

    protocol: int
    language: str
    pid: int


class Begin(Message, frozen=True):
    """A phase begins; should the worker be lost, the parent can name it."""

    phase: str


class Phase(Message, frozen=True):
    """A phase has ended."""

    name: str
    seconds: float


class Prepared(Message, frozen=True):
    version: str
    in_force: dict[str, str]  # settings read back, not those asked for
    weights_hash: str  # of what was loaded, see docs/reference/worker-protocol.md


class Answered(Message, frozen=True):
    seconds: float


class Fed(Message, frozen=True):
    pipeline: str  # what feeds, and how it is set


class MeasuredQuantity(msgspec.Struct, frozen=True):
    """One quantity of a measurement."""

    name: str  # wall_ns, host_issue_ns, device_span_ns, kernel_sum_ns
    count: int
    method: str
    resolution_ns: float
    floor: dict[str, float | None] = {}
    unit: Literal["ns"] = "ns"


class WarmUp(msgspec.Struct, frozen=True):
    kind: str
    settled: bool
    calls: int
    elapsed_s: float
    first_call_ns: float | None = None


class Notice(msgspec.Struct, frozen=True):
    code: str
    text: str


class Measured(Message, frozen=True):
    """The samples follow raw: all of the first quantity in order of time, then all of the second, and so on."""

    quantities: list[MeasuredQuantity]  # the first one is the headline
    calls_per_sample: int
    stopped_by: str
    elapsed_s: float
    bytes: int
    warm_up: WarmUp | None = None
    counts: dict[str, int] = {}  # over the whole measurement: faults, switches, migrations, CPU time
    groups: dict[str, list[int]] = {}  # the same for each group of neighbouring samples, column by column
    warnings: list[Notice] = []
    energy: EnergyOfBlock | None = None  # when it was asked for
    feeding: dict[str, float] = {}  # of fed calls: items, calls, wall_ns, work_ns, waited_ns and what was waited for


class Bye(Message, frozen=True):
    memory: dict[str, int] = {}  # bytes, by layer
    absent: dict[str, str] = {}  # layers that have no figure, and why


class Failed(Message, frozen=True):
    """The last word of a worker that cannot go on."""

    phase: str
    kind: FailureKind
    message: str
    traceback: str = ""


Reply = Hello | Begin | Phase | Prepared | Answered | Fed | Measured | Bye | Failed

_encoder = msgspec.json.Encoder()
_requests = msgspec.json.Decoder(Request)
_replies = msgspec.json.Decoder(Reply)


def line_of(message: Request | Reply) -> bytes:
    return _encoder.encode(message) + b"\n"


def request_in(line: bytes) -> Request:
    request: Request = _requests.decode(line)
    return request


def reply_in(line: bytes) -> Reply:
    """Raises msgspec.MsgspecError for anything that is not a reply, with numbers that contradict each other as well."""
    reply: Reply = _replies.decode(line)
    if isinstance(reply, Measured):
        told = BYTES_OF_A_SAMPLE * sum(quantity.count for quantity in reply.quantities)
        if not reply.quantities or min(quantity.count for quantity in reply.quantities) < 0:
            raise msgspec.ValidationError("a measurement without quantities, or with a negative count")
        if reply.bytes != told or told > MOST_RAW_BYTES:
            raise msgspec.ValidationError(f"a measurement of {reply.bytes} bytes, but the counts make {told}")
        if reply.calls_per_sample < 1:
            raise msgspec.ValidationError(f"{reply.calls_per_sample} calls in a sample")
    return reply


def raw_bytes_after(reply: Reply) -> int:
    return reply.bytes if isinstance(reply, Measured) else 0
