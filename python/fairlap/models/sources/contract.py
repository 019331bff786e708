"""The interface of a kind of source, and what it finds in a user's model.

A kind runs in two processes: ``open`` in one that reads the model, computes its float64 reference and may end in a
crash, and ``implementation`` in the process of a contestant. The parent asks an implementation at most for the ``file``
that it names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, get_args

import msgspec
import numpy as np
import numpy.typing as npt

from fairlap.engine.measurement import Notice
from fairlap.errors import FairlapError
from fairlap.machine.programs.sandbox import Starts
from fairlap.models.arrays import Arrays
from fairlap.models.modes import MODES
from fairlap.models.slices.corruptible import CorruptibleInput
from fairlap.models.spec import Dtype, Spec, Tensor, Tolerance
from fairlap.models.training.reference import Batch, Slopes
from fairlap.request.fields.source import Source
from fairlap.request.work import PRECISIONS_OF_MODELS, Mode, Precision


class SourceError(FairlapError):
    """A user's model cannot be raced. The message gives the reason."""

    code = "E_SOURCE"


def link_out_of_folder(link: str) -> SourceError:
    """Make the error that refuses a link out of a model's folder without --trust."""
    return SourceError(
        f"{link} is a link to a file outside of its folder; add --trust if you trust it", code="E_SOURCE_TRUST"
    )


def known_dtype(name: str, found: str) -> Dtype:
    """Of an input or an output, by NumPy's name."""
    if found not in get_args(Dtype):
        raise SourceError(f"{name} is {found}; inputs and outputs may be {', '.join(get_args(Dtype))}")
    return found  # type: ignore[return-value]


class Route(msgspec.Struct, frozen=True):
    """How a framework gets the model, or why it cannot."""

    name: str = ""  # such as "native"
    why_not: str = ""
    conversion_s: float | None = None  # of a conversion that was done once, when the model was opened
    conversion_bytes: int | None = None
    holds_weights: bool = True  # by the model's names; else only the outputs prove that they are the same
    precisions: tuple[Precision, ...] = PRECISIONS_OF_MODELS  # those that it can take the model to
    no_gradients: str = ""  # why it cannot be differentiated on this route
    no_training: str = ""  # why it cannot be trained on this route, although it may be differentiated
    in_training: bool = False  # it was converted as it is in training too
    bounds: Precision | None = None  # in whose bounds an answer is right, where this route rounds to the file's types

    @property
    def is_native(self) -> bool:
        """Whether the framework reads the file as it is."""
        return not self.why_not and self.name.startswith("native")

    def why_not_in(self, precision: Precision, mode: Mode = "infer") -> str:
        """Empty where the framework gets the model in this precision and mode."""
        if self.why_not:
            return self.why_not
        if not MODES[mode].gives_outputs and self.no_gradients:
            return self.no_gradients
        if MODES[mode].trains and self.no_training:
            return self.no_training
        if precision in self.precisions:
            return ""
        return f"the model stays in {' or '.join(self.precisions)} on this route ({self.name}); not in {precision}"


class Bundle(msgspec.Struct, frozen=True):
    """An opened source, as ``bundle.json`` in its folder: all that the parent and the contestants know of it."""

    source: Source
    kind: str  # module:Class
    spec: Spec
    batch: int
    routes: dict[str, Route]  # by implementation, such as onnx; or by framework, where it has a separate one
    reference: str  # how the float64 reference was computed
    notices: tuple[Notice, ...] = ()
    tolerances: dict[Precision, dict[str, Tolerance]] = {}  # by precision and output
    items: int = 0  # of the data for a metric
    files: tuple[tuple[str, str], ...] = ()  # all that was read, with its SHA-256; see ``Source.files``
    dims: tuple[str, ...] = ()  # those of the source that the file has names for
    unnoticed: dict[Precision, tuple[str, ...]] = {}  # inputs that a check in this precision would not miss
    no_training: str = ""  # why the model cannot be trained, although it has gradients
    own_types: tuple[str, ...] = ()  # of few bits, in which its file computes or holds weights
    groups: tuple[str, ...] = ()  # of the items of the data for a metric
    corruptible: CorruptibleInput | None = None  # the input that is corrupted, where corruptions were asked for


Forward = Callable[[Arrays, Arrays], Mapping[str, npt.NDArray[Any]]]
RoundingsInside = Callable[[Arrays, Arrays, Arrays, int], Sequence[Arrays] | None]
"""Of weights and inputs in float64, their exact answers and a number of draws: how far each draw of what float32 may
lose moves each element of the answers. None where the graph is not known."""


@dataclass(frozen=True)
class RightAnswers:
    """Right computations of a model of few bits, which differ as frameworks do."""

    rounded: tuple[Forward, ...]  # in other places
    on_other_edges: tuple[Forward, ...]  # with a value of each quantiser on the other side of a rounding edge


@dataclass(frozen=True)
class Proof:
    """Sets of inputs, the answers to them, and how exact an answer must be."""

    sets: Mapping[str, Arrays]
    references: Mapping[str, dict[str, npt.NDArray[np.float64]]]
    tolerances: dict[Precision, dict[str, Tolerance]]
    notices: tuple[Notice, ...] = ()
    unnoticed: dict[Precision, tuple[str, ...]] = field(default_factory=dict)
    unanswered: Mapping[str, Arrays] = field(default_factory=dict)  # further sets of inputs, without reference answers


@dataclass(frozen=True)
class Opened:
    """A source that was read. Weights are float32, by the model's names; it may have them in fewer bits."""

    inputs: tuple[Tensor, ...]  # whole numbers as sizes; a fill says what to draw
    outputs: tuple[str, ...]
    output_types: Mapping[str, Dtype]
    weights: Mapping[str, npt.NDArray[np.float32]]
    forward: Forward  # in the precision of what it is given; float64 for the reference
    routes: Mapping[str, Route]
    reference: str
    in_float32: Forward | None = None  # as a right framework computes it, whatever it is given
    roundings_inside: RoundingsInside | None = None
    right_answers: RightAnswers | None = None  # of a model of few bits: they set its tolerances
    example: Arrays | None = None  # inputs that come with the model
    dims: tuple[str, ...] = ()  # those of the source that the file has names for
    batch_axes: Mapping[str, int] = field(default_factory=dict)  # of inputs whose batch is not their first size
    multiplications: int | None = None  # of one call, where they can be counted
    uncounted: tuple[str, ...] = ()  # operators whose multiplications are not among them
    notices: tuple[Notice, ...] = field(default_factory=tuple)
    # Draws its own inputs and proves answers to them, given the seed of each set; else inputs are drawn by their fills.
    proof: Callable[[Mapping[str, int]], Proof] | None = None
    precisions: tuple[Precision, ...] = PRECISIONS_OF_MODELS
    own_types: tuple[str, ...] = ()  # of few bits, in which its file computes or holds weights
    items: int | None = None  # in one call, where the sizes of inputs do not say
    continuation: str = ""  # as in ``Spec``
    read_weights: int | None = None  # as in ``Spec``
    modes: tuple[Mode, ...] = ("infer",)  # of its calls, before a loss makes it differentiable


SlopesOf = Callable[[Arrays, Batch, bool], Slopes]
"""Of weights and a batch, in the precision that the weights have; the flag asks for the model as it is in training."""

OutputsOf = Callable[[Arrays, Arrays], Mapping[str, Any]]
"""Of weights and inputs in float64, by name, in inference."""


@dataclass(frozen=True)
class Learner:
    """What a kind of source gives to be trained: its gradients, by what its own framework differentiates with."""

    trained: tuple[str, ...]  # names of the weights that training changes
    slopes: SlopesOf
    outputs: OutputsOf
    how: str  # the gradients are computed
    why_not_train: str = ""  # although it has gradients
    unused_are_constants: bool = False  # weights that the loss does not depend on; else they are refused
    padding: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # rows kept from a gradient, by the weight
    how_to_freeze: str = "freeze what is not to be trained with requires_grad_(False)"
    cut_off_by: str = "detach(), no_grad() and .data"  # in the user's code


class SourceKind(ABC):
    """One kind of model file, such as ONNX."""

    title: ClassVar[str]  # for people
    suffixes: ClassVar[tuple[str, ...]] = ()
    starts: ClassVar[Starts] = "nothing"  # when it opens a model, without trust
    no_gradients: ClassVar[str] = "no gradients are taken of this kind of model"  # empty where they are
    code_of_other_files: ClassVar[str] = SourceError.code  # that refuses a file which is something else
    one_hash: ClassVar[bool] = False  # of all files together, where they are many
    names_dimensions: ClassVar[bool] = False  # whether contestants can be called at several sizes of what it names
    mask: ClassVar[str] = ""  # a further input that marks values and padding, where a model has one
    generates: ClassVar[bool] = False  # whether its models can answer token by token
    takes_custom_operators: ClassVar[bool] = False  # of a library that contestants load, and that is code

    @classmethod
    def recognises(cls, text: str) -> bool:
        """Whether this text names a source of this kind. Reads no file."""
        return text.lower().endswith(cls.suffixes) if cls.suffixes else False

    @classmethod
    def parts_of(cls, text: str) -> tuple[str, ...]:
        """Split what this text names into the files of one model; itself where it names one."""
        return (text,)

    @classmethod
    def files(cls, source: Source) -> tuple[Path, ...]:
        """All that determines the model, files and folders, to be hashed; none where that is not known."""
        return (Path(source.path),)

    @classmethod
    def readable(cls, source: Source) -> tuple[Path, ...]:
        """List what a model that is not trusted may read besides ``files``, when it is opened."""
        return (Path(source.path),)

    @classmethod  # noqa: B027  (there may be nothing to check)
    def check(cls, source: Source) -> None:
        """Refuse at once what cannot be this kind of model, before all of it is hashed and read."""

    @classmethod
    @abstractmethod
    def open(cls, source: Source, folder: Path) -> Opened:
        """Read the model, and write what contestants need into the folder."""

    @classmethod
    def learner(cls, source: Source, folder: Path) -> Learner:
        """Of a model that is opened in the folder, by the loss of the source. It may be asked in any process."""
        raise NotImplementedError

    @classmethod
    @abstractmethod
    def implementation(cls, bundle: Bundle, folder: Path, framework: str) -> Any:
        """Make what a package has as ``<framework>_model``: an object with the same functions.

        One for ``onnx`` may have a ``file`` instead; one that converts counts its ``conversion_s``.
        """
