"""The messages between parent and worker. docs/reference/worker-protocol.md documents them for other languages.

Each message is one JSON object on one line; its "type" names it. A message with "bytes" above zero is followed by
that many raw bytes: float64, little-endian. Unknown fields are skipped, so that fields can be added. The messages of
a scenario are defined with the scenario.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from fairlap.frameworks.work_place import WorkIn
from fairlap.meters.memory import Memory
from fairlap.request.scale import Rank, Scale
from fairlap.request.training import Training
from fairlap.request.training_data import ItemSizes
from fairlap.request.work import Mode, Precision
from fairlap.scenarios.latency_messages import (
    BYTES_PER_SAMPLE,
    Fed,
    Feed,
    Measure,
    Measured,
    Reading,
    require_consistent,
)
from fairlap.scenarios.load.load_messages import BYTES_OF_STAMPS, LoadTrial, OfferLoad, require_whole_stamps
from fairlap.scenarios.load.loadgen_messages import LoadGenResult, LoadGenRun
from fairlap.scenarios.ranks_messages import (
    CollectiveTimed,
    PrepareCollectives,
    RankLimits,
    StepAlone,
    SteppedAlone,
    TimeCollective,
)
from fairlap.scenarios.training_messages import Epoch, EpochTrained, Restore, Restored
from fairlap.scenarios.untimed.compilation_messages import Describe, Described, Resize, Resized
from fairlap.scenarios.untimed.profile_messages import ProfileCalls, Profiled

VERSION = 3
LONGEST_LINE_BYTES = 64 * 2**20
MOST_RAW_BYTES = 8 * 10**9

Which = Literal["inputs", "changed", "fed", "data"]
FailureKind = Literal["unsupported", "exception", "out_of_memory"]
FailedCode = Literal["", "E_COMMAND", "E_OUTPUT", "E_REPORT", "E_SERVER", "E_RANK", "E_HOST"]


class Message(msgspec.Struct, frozen=True, tag_field="type", tag=str.lower):
    """A message that belongs to no scenario."""


class Sandbox(msgspec.Struct, frozen=True):
    """What a worker leaves itself before it imports the framework, besides that and Python."""

    readable: tuple[str, ...]
    writable: tuple[str, ...]  # the last one is the race's folder for temporary files
    gpu: bool = False


class Prepare(Message, frozen=True):
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
    options: dict[str, str] = {}
    device_memory_limit_bytes: int | None = None  # enforced by the framework
    unseen: tuple[str, ...] = ()  # inputs of drawn calls; none is read before its call is due
    calibration: tuple[str, ...] = ()  # sets of inputs for the quantization of precision int8
    free_sizes: dict[str, int] = {}  # of the model's inputs, where they are not the usual ones
    scale: Scale | None = None  # with several ranks: start them, and spread the batch over them
    rank: Rank | None = None  # of such a rank; the batch and the files are those of all ranks together
    limits: RankLimits = RankLimits()  # how long ranks may take
    sandbox: Sandbox | None = None
    bind_ranks: bool = False  # each to cores of its own, where all of them run on this machine

    @property
    def files(self) -> tuple[str, ...]:
        """That every host must see."""
        return self.weights, self.inputs, self.changed

    @property
    def conducts(self) -> bool:
        """Whether the worker that gets it starts ranks."""
        return self.rank is None and self.scale is not None and (self.scale.ranks > 1 or bool(self.scale.hosts))


class Answer(Message, frozen=True):
    """Run one call on these inputs and write its outputs to a safetensors file. In mode "train", take some steps from
    the weights that were given, beginning with these inputs, and write the state after them too."""

    which: Which
    path: str
    inputs: str = ""  # of "data": a safetensors file


class Overhead(Message, frozen=True):
    """Time a call with next to nothing to compute, with the same settings. Nothing but ``quit`` follows."""


class Quit(Message, frozen=True):
    """Report the memory, then end."""


Request = (
    Prepare
    | Answer
    | Feed
    | Measure
    | OfferLoad
    | LoadGenRun
    | Epoch
    | Restore
    | ProfileCalls
    | Overhead
    | Describe
    | Resize
    | StepAlone
    | PrepareCollectives
    | TimeCollective
    | Quit
)


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


class Prepared(Message, frozen=True):
    version: str
    in_force: dict[str, str]  # settings read back from the framework, not copied from the request
    weights_hash: str  # of the loaded weights, see docs/reference/worker-protocol.md
    route: str = ""  # how a user's model got into the framework
    conversion_s: float | None = None  # how long that took, where it was converted
    work_in: WorkIn = "worker"  # the process that does the work of a call
    hosts: tuple[str, ...] = ()  # of a conductor: where its ranks run, in order of their numbers


class Answered(Message, frozen=True):
    seconds: float
    reading: Reading = Reading()


class OverheadMeasured(Message, frozen=True, tag="overhead_measured"):
    call_ns: float | None = None
    why: str = ""  # there is none


class Ended(Message, frozen=True):
    """The answer to quit, and the last message."""

    memory: Memory = Memory()  # of all ranks together, where there are several
    ranks: tuple[Memory, ...] = ()  # of each, in order of their numbers


class Failed(Message, frozen=True):
    """The last message of a worker that cannot continue."""

    phase: str
    kind: FailureKind
    message: str
    traceback: str = ""
    code: FailedCode = ""  # a more specific one than that of the kind


Reply = (
    Join
    | Hello
    | Begin
    | Phase
    | Prepared
    | Answered
    | Fed
    | Measured
    | LoadTrial
    | LoadGenResult
    | EpochTrained
    | Restored
    | Profiled
    | OverheadMeasured
    | Described
    | Resized
    | SteppedAlone
    | CollectiveTimed
    | Ended
    | Failed
)

_encoder = msgspec.json.Encoder()
_requests: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_replies: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)


def line_of(message: Request | Reply) -> bytes:
    return _encoder.encode(message) + b"\n"


def request_in(line: bytes) -> Request:
    return _requests.decode(line)


def reply_in(line: bytes) -> Reply:
    """Raise msgspec.MsgspecError for anything but a reply, also for numbers that contradict each other."""
    reply = _replies.decode(line)
    if isinstance(reply, Measured):
        require_consistent(reply, MOST_RAW_BYTES)
    if isinstance(reply, LoadTrial):
        require_whole_stamps(reply, MOST_RAW_BYTES)
    return reply


_MOST_QUANTITIES = 16
_MOST_SAMPLES_PER_S = 10**8  # a sample of the engine takes several times 10 ns
_SAMPLES_ALWAYS_ALLOWED = 2**20


def most_raw_bytes(request: Request, after_s: float) -> int:
    """That an answer may announce: by what was asked for, and by what can be timed since."""
    if isinstance(request, OfferLoad):
        return min(MOST_RAW_BYTES, BYTES_OF_STAMPS * request.requests)
    if not isinstance(request, Measure):
        return 0
    timed = max(_SAMPLES_ALWAYS_ALLOWED, int(after_s * _MOST_SAMPLES_PER_S))
    samples = timed if request.samples is None else request.samples
    return min(MOST_RAW_BYTES, BYTES_PER_SAMPLE * _MOST_QUANTITIES * samples)


def raw_bytes_after(reply: Reply) -> int:
    return reply.bytes if isinstance(reply, Measured | LoadTrial) else 0
