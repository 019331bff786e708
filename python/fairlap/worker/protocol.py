"""The messages between parent and worker. docs/reference/worker-protocol.md documents them for other languages.

Each message is one JSON object on one line; its "type" names it. A message with "bytes" above zero is followed by
that many raw bytes: float64, little-endian. Unknown fields are skipped, so that fields can be added. The messages of
a scenario are defined with the scenario.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any, Literal

import msgspec

from fairlap.meters.memory import Memory
from fairlap.request.fields.data.training_data import ItemSizes
from fairlap.request.fields.scale import Rank, Scale
from fairlap.request.fields.sizes.padding import PaddedSize
from fairlap.request.fields.training import Training
from fairlap.request.work import Mode, Precision
from fairlap.scenarios.asking import Ask, Prepared, Reply
from fairlap.scenarios.calls.latency_messages import Reading
from fairlap.scenarios.messages import ASKS
from fairlap.scenarios.ranks.ranks_messages import RankLimits

VERSION = 3
LONGEST_LINE_BYTES = 64 * 2**20

Which = Literal["inputs", "changed", "fed", "data"]
FailureKind = Literal["unsupported", "exception", "out_of_memory"]
FailedCode = Literal[
    "",
    "E_ARGUMENT_CHANGED",
    "E_BENCHMARK",
    "E_COMMAND",
    "E_OUTPUT",
    "E_REPORT",
    "E_SERVER",
    "E_STAGE",
    "E_RANK",
    "E_HOST",
]


class Message(Reply, frozen=True, tag=str.lower):
    """One that belongs to no scenario."""


class Sandbox(msgspec.Struct, frozen=True):
    """What a worker leaves itself before it imports the framework, besides that and Python."""

    readable: tuple[str, ...]
    writable: tuple[str, ...]  # the last one is the race's folder for temporary files
    gpu: bool = False


class Answered(Message, frozen=True):
    seconds: float
    reading: Reading = Reading()
    cpu_s: float | None = None  # of all threads of the process during the call; None where it was not measured


class Ended(Message, frozen=True):
    """The answer to quit, and the last message."""

    memory: Memory = Memory()  # of all ranks together, where there are several
    ranks: tuple[Memory, ...] = ()  # of each, in order of their numbers


class Dropped(Message, frozen=True):
    """The contestant is gone, and the process goes on."""

    memory: Memory = Memory()  # of the contestant, as in ``Ended``


class Prepare(Ask[Prepared], frozen=True, tag="prepare"):
    """Load one model into one framework. Files are safetensors."""

    framework: str  # a name, or "module:Class"
    workload: str  # the package that holds the model, such as "fairlap.bench_models.mlp", or a folder
    batch: int
    threads: int
    weights: str
    inputs: str
    changed: str  # inputs of the same shapes with other values
    labels: str | None = None  # a file with a tensor "labels"
    mode: Mode = "infer"
    precision: Precision = "fp32"
    training: Training | None = None  # in mode "train"
    sizes: ItemSizes | None = None  # of the data that the model learns, where its own sizes follow them
    variant: str = ""
    device: str = "cpu"
    options: dict[str, str] = msgspec.field(default_factory=dict)
    device_memory_limit_bytes: int | None = None  # enforced by the framework
    unseen: tuple[str, ...] = ()  # inputs of drawn calls; none is read before its call is due
    calibration: tuple[str, ...] = ()  # sets of inputs for the quantization of precisions int8 and fp8
    free_sizes: dict[str, int] = msgspec.field(default_factory=dict)  # of inputs, where not the usual
    scale: Scale | None = None  # with several ranks: start them, and spread the batch over them
    rank: Rank | None = None  # of such a rank; the batch and the files are those of all ranks together
    limits: RankLimits = RankLimits()  # how long ranks may take
    sandbox: Sandbox | None = None
    bind_ranks: bool = False  # each to cores of its own, where all of them run on this machine
    padded: tuple[PaddedSize, ...] = ()  # what calls of other sizes are padded to; the files are as calls get them
    devices: tuple[str, ...] = ()  # of the ranks of a host, each of which then sees its own alone

    @property
    def files(self) -> tuple[str, ...]:
        """That every host must see."""
        return self.weights, self.inputs, self.changed

    @property
    def conducts(self) -> bool:
        """Whether the worker that gets it starts ranks."""
        return self.rank is None and self.scale is not None and (self.scale.ranks > 1 or bool(self.scale.hosts))

    @property
    def service(self) -> str:
        return "fairlap.worker.ranks.conductor:Conductor" if self.conducts else ""


class Answer(Ask[Answered], frozen=True, tag="answer"):
    """Run one call on these inputs and write its outputs to a safetensors file.

    In mode "train", take some steps from the weights that were given, beginning with these inputs, and write the state
    after them too.
    """

    which: Which
    path: str
    inputs: str = ""  # of "data": a safetensors file


class Drop(Ask[Dropped], frozen=True, tag="drop"):
    """Let go of the contestant, so that the next ``prepare`` begins without it."""


class Quit(Ask[Ended], frozen=True, tag="quit"):
    """Report the memory, then end."""


class Hello(Message, frozen=True):
    """The first message of a worker."""

    protocol: int
    language: str
    pid: int
    holds_orphans: bool = False  # what its descendants leave behind stays below the process that was started


class Join(Message, frozen=True):
    """The first line of a rank over its connection, before its ``hello``."""

    number: int
    host: str
    token: str  # FAIRLAP_RANKS of its environment, which proves that the conductor started it


class Begin(Message, frozen=True):
    """A phase begins. If the worker is lost, the parent can name it."""

    phase: str


class Phase(Message, frozen=True):
    """A phase has ended."""

    name: str
    seconds: float


class Failed(Message, frozen=True):
    """The last message of a worker that cannot continue."""

    phase: str
    kind: FailureKind
    message: str
    traceback: str = ""
    code: FailedCode = ""  # a more specific one than that of the kind


Request = Ask[Any]
REQUESTS: tuple[type[Request], ...] = (Prepare, Answer, Drop, Quit, *ASKS)
REPLIES: tuple[type[Reply], ...] = (
    *(Join, Hello, Begin, Phase, Failed),
    *dict.fromkeys(each.kind_of_answer() for each in REQUESTS),
)

_encoder = msgspec.json.Encoder()
_requests: msgspec.json.Decoder[Request] = msgspec.json.Decoder(reduce(or_, REQUESTS))
_replies: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(reduce(or_, REPLIES))


def line_of(message: Request | Reply) -> bytes:
    return _encoder.encode(message) + b"\n"


def request_in(line: bytes) -> Request:
    return _requests.decode(line)


def reply_in(line: bytes) -> Reply:
    """Raise msgspec.MsgspecError for anything but a reply, also for numbers that contradict each other."""
    reply = _replies.decode(line)
    reply.require_consistent()
    return reply
