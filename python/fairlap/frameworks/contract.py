"""The interface of adapters: each returns a contestant that is ready to be called, checked and measured.

An adapter refuses what it cannot do with the reason, before anything is imported or built.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from fairlap.frameworks.contract_parts.called_programs import OwnTimes
from fairlap.frameworks.contract_parts.compilation import Compilation
from fairlap.frameworks.contract_parts.profiler import Profiler
from fairlap.frameworks.contract_parts.several_works import SeveralWorks
from fairlap.frameworks.contract_parts.work_place import WorkIn
from fairlap.machine.files.installed_size import installed_bytes
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload
from fairlap.request.fields.package_origin import OF_ENVIRONMENTS
from fairlap.request.fields.scale import Collective, Rank
from fairlap.request.work import Precision, why_not_on
from fairlap.suggestions import did_you_mean

if TYPE_CHECKING:
    from fairlap.engine import Batch, Notice
    from fairlap.engine.token_stamps import TokenStamps


Phase = Callable[[str], AbstractContextManager[None]]
"""``with phase("build"):`` times a part of the preparation under its name: import, build, compile."""

RankLauncher = Literal["", "torchrun", "processes", "mpirun"]
"""``processes`` are started one by one, and find each other at the addresses of ``Rank``."""


@dataclass(frozen=True)
class Settings:
    """The settings requested of every contestant. Those in force are read back from the framework."""

    threads: int
    variant: str = ""
    device: str = "cpu"
    options: Mapping[str, str] = field(default_factory=dict)  # the framework's own, such as mode=max-autotune
    device_memory_limit_bytes: int | None = None  # enforced by the framework, where it can
    cache_folder: str = ""  # where its compiler keeps what it compiled, for later processes of the race; or nowhere
    # It takes each step together with other processes: its work is its own part of the batch, and in mode "train" the
    # gradients of all ranks are averaged. ``TrainingState.read`` gives the whole state, and all ranks call it together.
    rank: Rank | None = None


@dataclass(frozen=True)
class Fed:
    """How a contestant takes batches that a pipeline owns. Each one stays valid until the work on it is done."""

    hand_over: Callable[[Batch], Any]  # a batch of the feeder as the framework takes it, its memory shared
    run: Callable[[Mapping[str, Any]], Any]  # one unit of work on what was handed over, by the names that bind takes
    device: str = "cpu"  # on which it takes them
    read: Callable[[Any], npt.NDArray[Any]] = np.asarray  # of one that was handed over on a GPU, in host memory


@dataclass(frozen=True)
class DeviceStream:
    """The stream of a GPU on which a framework works.

    ``find`` takes a call that does the work and returns what :func:`fairlap.engine.stream_of` takes; it raises
    NotAvailable where the stream cannot be found. It is asked after the headline was measured, so it may do what makes
    later calls slower.
    """

    how: str  # it is found, in a few words
    find: Callable[[Callable[[], Any]], object]


@dataclass(frozen=True)
class TrainingState:
    """What a contestant in mode "train" has learnt so far.

    ``read`` gives it by the names of ``State.named``, in the spec's layout; ``reset`` goes back to the weights that
    were given and to an optimizer that has taken no step; ``restore`` takes what ``read`` gave and goes on from there.
    ``answering`` takes batches of inputs and gives the callable that answers all of them as in inference, with the
    weights of that moment: the outputs of each batch as NumPy arrays, by the spec's names. ``held_bytes`` is the memory
    of the arrays that live from step to step, by what they are: "weights", "optimizer_state". ``hold`` copies the state
    within the framework and gives the callable that puts it back. It must be quick: timed steps follow it, and the
    first of them take longer after whatever else ran.
    """

    read: Callable[[], dict[str, npt.NDArray[np.float32]]]
    reset: Callable[[], Any]
    restore: Callable[[Arrays], Any]
    answering: Callable[[Sequence[Arrays]], Callable[[], Sequence[Arrays]]] | None = None  # None if it cannot
    held_bytes: Callable[[], Mapping[str, int]] | None = None
    hold: Callable[[], Callable[[], Any]] | None = None  # None: by ``read`` and ``restore``


@dataclass(frozen=True)
class Contestant:
    """A framework with its model loaded.

    ``bind`` takes inputs (by the spec's names) and gives the callable for one unit of work on them: an inference,
    or the loss and its gradients, or a step of training, for which inputs include "labels" where the loss has some.
    Such callables take turns while they are timed, so they should share everything but their inputs; a result need not
    outlive the next call of any of them. ``done`` waits for all that such a call returned; None when calls return when
    done. On a GPU the worker waits for the device in place of None, which also stands for calls that return when all
    their work is enqueued. ``outputs`` turns what a call returned into NumPy arrays by the spec's names; in mode "grad"
    they are "loss" and "grad/<weight>" in the weight's own layout, in mode "train" the "loss". ``weights`` reads the
    weights back out of the framework, by the spec's names and in its layout, for hashing.
    """

    bind: Callable[[Arrays], Callable[[], Any]]
    done: Callable[[Any], Any] | None
    outputs: Callable[[Any], dict[str, npt.NDArray[np.float32]]]
    weights: Callable[[], dict[str, npt.NDArray[np.float32]]]
    in_force: Mapping[str, str]  # read back: threads, precision, ... ; keys as in Settings, then the framework's own
    memory_bytes: Callable[[], Mapping[str, int]] | None = None  # its allocator's: live, live_peak, reserved, ...
    no_memory_because: str = ""  # why there are no such statistics
    forget_memory_peak: Callable[[], Any] | None = None  # resets the peaks of the allocator, where that is possible
    stream: DeviceStream | None = None  # on a GPU: where its work goes; None where that cannot be known
    device: int | None = None  # the CUDA device that the worker waits for, which sets this; None on a CPU
    fed: Fed | None = None  # None if it cannot be fed
    training: TrainingState | None = None  # in mode "train"
    switching_copies: bool = False  # a call on other inputs than the call before copies them first
    quantization: Quantization | None = None  # in int8 or fp8
    profiler: Profiler | None = None
    stamps: TokenStamps | None = None  # of the tokens of its answers, where it generates
    bind_new: Callable[[Arrays], Callable[[], Any]] | None = None  # in place of ``bind`` for inputs of one drawn call
    stamps_of_new: TokenStamps | None = None  # of the tokens of what ``bind_new`` made
    cache_bytes: Callable[[], int] | None = None  # of keys and values after an answer, where it generates
    compilation: Callable[[], Compilation] | None = None  # None if its adapter does not report it
    work_in: WorkIn = "worker"
    shared_by_threads: bool = False  # calls of several threads do not disturb each other, nor each other's results
    # What another thread than the one that prepared it must be in to call it with the same settings; None if nothing.
    in_thread: Callable[[], AbstractContextManager[Any]] | None = None
    # Moves what it holds of the model within memory, compiling nothing; calls are then bound again. None if it cannot.
    deal: Callable[[], Any] | None = None
    leave: Callable[[], Any] | None = None  # of a rank: what all ranks do together before one of them may end
    own_times: OwnTimes | None = None  # that the program which it calls reports of its work, and is ranked by
    cpu_times: OwnTimes | None = None  # of the processes that its calls start
    # Their peak in bytes, the median of calls, or why it is unknown; given the most that this process held meanwhile.
    peak_of_runs: Callable[[int], int | str] | None = None
    notices: Callable[[], tuple[Notice, ...]] | None = None  # what a reader of its times should know
    # In place of ``outputs`` where arguments may be outputs too: by the call that was bound, and what it returned.
    outputs_of: Callable[[Callable[[], Any], Any], dict[str, npt.NDArray[Any]]] | None = None
    # Fills the memory that a bound call has its inputs in with others, and gives the call on those. None if it cannot.
    rebind: Callable[[Callable[[], Any], Arrays], Callable[[], Any]] | None = None
    bind_once: Callable[[Arrays], Callable[[], Any]] | None = None  # in place of ``bind`` for arrays of one call alone
    # After the result of a checked call was read: raises ContestantFailed where it wrote to inputs that are not its to
    # change, and fills what was rebound with what it had.
    inputs_read: Callable[[], Any] | None = None


@dataclass(frozen=True)
class Collectives:
    """The collective operations of a framework, as one of its ranks has them.

    ``bind`` takes an operation, the array that this rank gives, and the rank that broadcasts; it raises ``Unsupported``
    for an operation that the framework lacks. Calls may write to the array. ``output`` gives what came out, flat: the
    sum, the arrays of all ranks one after the other, or that of the rank that broadcasts.
    """

    bind: Callable[[Collective, npt.NDArray[np.float32], int], Callable[[], Any]]
    done: Callable[[Any], Any] | None  # as in ``Contestant``
    output: Callable[[Any], npt.NDArray[np.float32]]
    in_force: Mapping[str, str]
    leave: Callable[[], Any] | None = None  # as in ``Contestant``


@dataclass(frozen=True)
class Quantization:
    """How the framework's own tool quantized the model: a conversion, done once and kept."""

    name: str
    seconds: float


NO_WEIGHTS = "cannot be read: no weights"
"""``in_force["precision"]`` of a model without weights, if the precision is read from the weights."""

UNKNOWN = "unknown"
"""What a setting in ``in_force`` begins with that cannot be read back, so that it may differ from the others'."""

RANKS = "ranks"
"""The setting in ``in_force`` of ranks: how they exchange, over what, and how many. Of one process, what it lacks."""


class Unsupported(Exception):
    """This framework cannot do what was requested. The message gives the reason."""


class Framework(SeveralWorks, ABC):
    """One framework. Created for each work of a process; its module must not import the framework at the top."""

    name: ClassVar[str]
    packages: ClassVar[tuple[str, ...]]  # what pip installs, the versioned one first
    packages_on: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # in their place by kind of device, such as "cuda"
    packages_in: ClassVar[Mapping[Precision, tuple[str, ...]]] = {}  # besides, by precision
    module: ClassVar[str]  # what is imported; if it is importable, the framework is installed
    implementation: ClassVar[str] = ""  # which of a model's implementations it runs, such as onnx; by default its own
    variants: ClassVar[tuple[str, ...]] = ("",)  # the empty one, the default, first
    # Its own options: by name the known values, or none where only the framework knows them.
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    options_of: ClassVar[Mapping[str, Mapping[str, tuple[str, ...]]]] = {}  # further ones, by variant
    libraries: ClassVar[tuple[str, ...]] = ()  # options that name a library of the user's, which is code
    # By option, or "variant": the values that a search for the best settings tries besides the default. One may name
    # further options, as in a contestant's name: "compile:mode=max-autotune"; {threads} are those of the race.
    tunable: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    tunable_on: ClassVar[Mapping[str, Mapping[str, tuple[str, ...]]]] = {}  # in their place by kind of device
    not_tuned: ClassVar[Mapping[str, str]] = {}  # settings that a reader may miss in the search, and why it lacks them
    devices: ClassVar[tuple[str, ...]] = ("cpu",)  # the kinds on which its adapter runs it
    devices_of: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # by variant, where it has fewer
    modes: ClassVar[tuple[str, ...]] = ("infer",)
    modes_of: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # by variant, where it has fewer
    precisions: ClassVar[tuple[Precision, ...]] = ("fp32",)
    no_precision: ClassVar[Mapping[Precision, str]] = {}  # why it lacks one, where that is known
    device_memory_limit: ClassVar[str] = ""  # how it limits a device's memory
    generates: ClassVar[bool] = False  # its adapter can answer token by token
    generates_only: ClassVar[str] = ""  # of what, where it does nothing else
    rank_launcher: ClassVar[RankLauncher] = ""  # what starts the ranks that share its steps; "" if it has none
    has_own_model: ClassVar[bool] = False  # a server, which is not given the model that is raced
    environment: ClassVar[Mapping[str, str]] = {}  # set before the process starts: telemetry off, quiet logs

    _version: str

    @classmethod
    def packages_for(cls, device: str, precisions: Iterable[Precision] = ()) -> tuple[str, ...]:
        """List what pip installs for this device, such as "cuda:1", and for these precisions."""
        more = (package for precision in precisions for package in cls.packages_in.get(precision, ()))
        return (*cls.packages_on.get(device.partition(":")[0], cls.packages), *more)

    @classmethod
    def tunable_for(cls, device: str) -> Mapping[str, tuple[str, ...]]:
        return cls.tunable_on.get(device.partition(":")[0], cls.tunable)

    @classmethod
    def why_no_option(cls, variant: str, options: Mapping[str, str]) -> str:
        """Why one of these options is refused; empty where none is, as far as the class declares them."""
        known = {**cls.options, **cls.options_of.get(variant, {})}
        for option, value in options.items():
            if option not in known:
                near = did_you_mean(option, (*known, *OF_ENVIRONMENTS))
                listed = near or (f"it has {', '.join(known)}" if known else "it has none")
                only = [f"{cls.name}:{each}" for each, further in cls.options_of.items() if option in further]
                of = f"; {' and '.join(only)} has it" if only else ""
                return f"{cls.name} has no option {option!r}; {listed}{of}"
            if known[option] and value not in known[option]:
                meant = did_you_mean(value, known[option]) or f"it has {', '.join(known[option])}"
                return f"{cls.name} has no {option} {value!r}; {meant}"
        return ""

    @classmethod
    def why_not_in(cls, precision: Precision) -> str:
        """Why it does not compute in this precision; empty where it does, or may."""
        if precision in cls.precisions:
            return ""
        why = cls.no_precision.get(precision, f"it has {', '.join(cls.precisions)}")
        return f"{cls.name} has no {precision}: {why}"

    @classmethod
    def why_not_on(cls, device: str, variant: str) -> str:
        """Why it does not run on this device, such as "cuda:1"; empty where it does."""
        devices = cls.devices_of.get(variant, cls.devices)
        if device.partition(":")[0] in devices:
            return ""
        named = f"{cls.name}:{variant}" if variant in cls.devices_of else cls.name
        hint = ": add --device cuda" if devices == ("cuda",) else ""
        return f"{named} runs on {' or '.join(devices)} here; requested was {device}{hint}"

    @classmethod
    def why_only_generates(cls) -> str:
        return f"{cls.name} runs {cls.generates_only} with --generate, and nothing else"

    @classmethod
    def why_no_mode(cls, variant: str, mode: str) -> str:
        """Empty where it has it."""
        modes = cls.modes_of.get(variant, cls.modes)
        if mode in modes:
            return ""
        named = f"{cls.name}:{variant}" if variant in cls.modes_of else cls.name
        return f"{named} has no mode {mode} here; it has {', '.join(modes)}"

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        """Variables that must be set before the interpreter starts, so that settings take effect."""
        return dict(cls.environment)

    @classmethod
    def files(cls, work: Workload) -> tuple[Path, ...]:
        """List what it reads a user's model from, the main file first; nothing where the model is a function."""
        return ()

    @abstractmethod
    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        """Import, build and compile, each under its phase; raise ``Unsupported`` for what cannot be done."""

    def collectives(self, wanted: Settings, phase: Phase) -> Collectives:
        """Those of the rank that is wanted, in place of ``prepare``."""
        raise Unsupported(f"fairlap does not time collective operations of {self.name}")

    @classmethod
    def installed_bytes(cls, in_force: Mapping[str, str]) -> int:
        """Size on disk of what its users install: its package with those that it needs; 0 where none is known."""
        first = [each[:1] for each in (cls.packages, *cls.packages_on.values())]
        return installed_bytes(name for names in first for name in names)

    def version(self) -> str:
        """After ``prepare``, which sets it: the version that the imported framework reports."""
        return self._version


def device_number(device: str) -> int:
    """1 for "cuda:1", 0 for "cuda"."""
    return int(device.partition(":")[2] or 0)


def refuse_what_is_unknown(framework: type[Framework], work: Workload, wanted: Settings) -> None:
    name = framework.name
    if why := framework.why_not_on(wanted.device, wanted.variant):
        raise Unsupported(why)
    if wanted.threads < 1:
        raise Unsupported(f"{name} needs at least one thread; requested were {wanted.threads}")
    if wanted.variant not in framework.variants:
        raise Unsupported(f"{name} has no variant {wanted.variant!r}")
    if why := framework.why_no_mode(wanted.variant, work.mode):
        raise Unsupported(why)
    if why := framework.why_not_in(work.precision):
        raise Unsupported(why)
    if work.spec.continuation and not framework.generates:
        raise Unsupported(f"{name} has no loop of decoding here that keeps the cache of keys and values in it")
    if not framework.has_own_model and (why := work.why_not_in(name, framework.implementation or name)):
        raise Unsupported(why)
    if why := why_not_on(work.precision, wanted.device):
        raise Unsupported(why)
    if why := framework.why_no_option(wanted.variant, wanted.options):
        raise Unsupported(why)


def whole_option(options: Mapping[str, str], name: str, most: int) -> int:
    """Read an option that is a number of threads or streams, and refuse more than the race gives."""
    text = options.get(name, "1")
    if not (text.isdecimal() and 1 <= int(text) <= most):
        raise Unsupported(f"{name} must be 1 to the number of threads, {most} (got {text})")
    return int(text)
