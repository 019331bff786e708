"""The work that a race measures, and the conditions under which its processes run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal

import msgspec

from fairlap import quantity_text
from fairlap.request.fields.data.stages import Stages
from fairlap.request.fields.data.training_data import ItemSizes, TrainingData
from fairlap.request.fields.device_conditions import DeviceConditions
from fairlap.request.fields.load import Load
from fairlap.request.fields.scale import Scale
from fairlap.request.fields.sizes.mix import Mix
from fairlap.request.fields.source import Source
from fairlap.request.fields.streams import StreamLoad
from fairlap.request.fields.training import Training

AgentMode = Literal["ppo", "dqn"]
"""The algorithms by which agents learn, each a folder of ``bench_models/agents``."""

Mode = Literal[
    "infer",
    "grad",
    "train",
    "solve",
    "solve-grad",
    "jvp",
    "vjp",
    "hvp",
    "hessian",
    "jacobian",
    "third",
    "per-sample",
    "simulate",
    AgentMode,
]


Precision = Literal["fp32", "fp16", "bf16", "autocast", "tf32", "int8", "fp8", "fp64"]
"""fp16 and bf16 hold weights and inputs in that type. autocast keeps the weights in float32 and leaves it to the
framework which operations run in bfloat16. tf32 lets a GPU round the factors of products. int8 is the framework's own
quantization after training, with calibration; fp8 is the same to E4M3, which GPUs multiply. Differential equations and
environments alone are in fp64."""

PRECISIONS_OF_MODELS: tuple[Precision, ...] = ("fp32", "fp16", "bf16", "autocast", "tf32", "int8", "fp8")

CALIBRATED: tuple[Precision, ...] = ("int8", "fp8")
"""Those to which a model is quantized after training, with sets of inputs; of inference alone."""

_ONLY_ON_GPUS: Mapping[Precision, str] = {
    "tf32": "tf32 is a way of multiplying on NVIDIA GPUs; a CPU has none",
    "fp8": "products of fp8 are those of NVIDIA GPUs; a CPU computes them in float32",
}


def why_not_on(precision: Precision, device: str) -> str:
    """Why no framework has this precision on such a device; empty where one may."""
    return _ONLY_ON_GPUS.get(precision, "") if device == "cpu" else ""


CALLABLE = "callable"
"""The model that stands for no model."""


Conditions = Literal["controlled", "as-found"]

Objective = Literal["time", "cost", "energy", "memory", "size"]
"""What a choice between models minimises."""


Fresh = Literal["every", "first", "never"]
"""In which blocks each work has its own processes, where works could share them."""

FreshBlocks = Annotated[
    Fresh,
    msgspec.Meta(
        description="Of several works: in which blocks each has new processes; in all by default. In the others a "
        "process takes several, one after the other. never has few figures of the start, compilation and memory."
    ),
]


class StartWeights(msgspec.Struct, frozen=True):
    """A file of weights from which training starts."""

    path: str
    sha256: str

    @property
    def identity(self) -> StartWeights:
        """The weights, wherever their file is."""
        return msgspec.structs.replace(self, path="")

    @property
    def text(self) -> str:
        return f"{self.path.rpartition('/')[2]} sha256:{self.sha256[:12]}"


class Work(msgspec.Struct, frozen=True):
    """One model at one batch size, in one mode and precision. Works are the same where their ids are."""

    model: str
    batch: int
    mode: Mode = "infer"
    precision: Precision = "fp32"
    source: Source | None = None  # of a user's own model; then ``model`` is its name
    training: Training | None = None  # in mode "train"
    train_on: TrainingData | None = None  # where it is trained to a score
    start: StartWeights | None = None  # in mode "train"; without it the weights are drawn
    together: tuple[Precision, ...] = ()  # ranked with each other: then every contestant has one of these
    load: Load | None = None  # where the largest rate of requests is searched for
    scale: Scale | None = None  # where the same work is raced at several
    stages: Stages | None = None  # where all from file to answer is timed
    sizes_of_calls: Mix | None = None  # of a built-in model, where they change; a user's model has them in its source
    streams: StreamLoad | None = None  # where prompts are sent to servers; then ``model`` is the name of their file
    on_device: DeviceConditions | None = None  # of a GPU, where others than the usual are asked for

    @property
    def id(self) -> str:
        """Made from all that defines the work: with the content of its files, and without where they are."""
        return _id_of(self)

    @property
    def label(self) -> str:
        """Name it for people."""
        return f"{self.model} · {self.what_is_done}"

    @property
    def what_is_done(self) -> str:
        """The label without the model."""
        if self.of_data:
            return f"passes over {quantity_text.count(self.batch, 'item')}"
        if self.streams is not None:
            return self.streams.text
        mode = self.mode if self.training is None else f"{self.mode} {self.training.text}"
        start = "" if self.start is None else f" · from {self.start.text}"
        on = "" if self.train_on is None else f" · on {self.train_on.label}"
        load = "" if self.load is None else f" · load {self.load.text}"
        scale = "" if self.scale is None else f" · {self.scale.text}"
        batch = f"batch {self.batch}" if self.mix is None else self.mix.text
        files = "" if self.stages is None else f" · {self.stages.text}"
        device = "" if self.on_device is None else f" · {self.on_device.text}"
        return f"{mode} · {', '.join(self.precisions)} · {batch}{scale}{start}{on}{load}{files}{device}"

    @property
    def is_model(self) -> bool:
        """Rather than callables or commands, which compute whatever they do."""
        return self.model != CALLABLE if self.source is None else not self.source.of_callables

    @property
    def of_data(self) -> bool:
        """Whether a call is a pass over data on disk, of as many items as the batch says."""
        return self.source is not None and self.source.of_data

    @property
    def mix(self) -> Mix | None:
        """The sizes of its calls, where they change from call to call."""
        return self.sizes_of_calls if self.source is None else self.source.mix

    @property
    def free_sizes(self) -> dict[str, int]:
        """Of a built-in model whose calls change their size: those that most calls have, for which it is prepared."""
        mix = self.sizes_of_calls
        return {} if mix is None else dict(mix.dims(mix.usual))

    @property
    def sizes(self) -> ItemSizes | None:
        """Of the data that decide those of the model; None where they are the model's own."""
        return None if self.train_on is None else self.train_on.sizes

    @property
    def precisions(self) -> tuple[Precision, ...]:
        return self.together or (self.precision,)

    def without_scale(self) -> Work:
        """As it was asked for: in weak scaling, with the batch of each rank."""
        scale = self.scale
        if scale is None:
            return self
        batch = self.batch // scale.ranks if scale.scaling == "weak" else self.batch
        return msgspec.structs.replace(self, batch=batch, scale=None)

    def on_any_threads(self) -> Work:
        """Drop a scale that is a number of threads alone: every race has one, so it makes no other work."""
        alone = self.scale is not None and self.scale.ranks == 1 and not self.scale.hosts
        return msgspec.structs.replace(self, scale=None) if alone else self

    def in_precision(self, precision: Precision | None) -> Work:
        """Select what one contestant does of it; ``precision`` is None where all contestants have the same one."""
        return msgspec.structs.replace(self, precision=precision or self.precision, together=())

    def in_file(self, file: str) -> Work:
        """Select the file that one contestant runs, by its name; an empty one where the model is one file."""
        if not file or self.source is None:
            return self
        return msgspec.structs.replace(self, source=self.source.of_file(file))


_DIGITS_OF_ID = 16


@cache
def _id_of(work: Work) -> str:
    of_file = work.source is not None or work.streams is not None
    named = msgspec.structs.replace(work, model="") if of_file else work
    return hashlib.sha256(msgspec.json.encode(_defining(named), order="sorted")).hexdigest()[:_DIGITS_OF_ID]


def _defining(value: Any) -> Any:
    """Leave out what is as by default, so that a field that works get later changes no id."""
    if isinstance(value, msgspec.Struct):
        value = getattr(value, "identity", value)
        fields = msgspec.structs.fields(value)
        found = {each.name: getattr(value, each.name) for each in fields}
        given = {each.name: _defining(found[each.name]) for each in fields if found[each.name] != each.default}
        tag = value.__struct_config__.tag
        return given if tag is None else {"type": tag, **given}
    return [_defining(each) for each in value] if isinstance(value, (tuple, list)) else value
