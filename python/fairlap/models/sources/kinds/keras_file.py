"""Keras files: native on each of Keras's backends, and exported for ONNX Runtime and OpenVINO.

They are read in safe mode, so that no code in the file runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fairlap.engine.measurement import Notice
from fairlap.models.arrays import Arrays
from fairlap.models.sources.archives import require_archive
from fairlap.models.sources.contract import Bundle, Learner, Opened, Route, SourceKind, known_dtype
from fairlap.models.sources.given_data.reading import inputs_of
from fairlap.models.sources.imported import OnnxOnDisk
from fairlap.models.sources.inputs import input_sets, shapes_of
from fairlap.models.sources.learning.loss import kind_of_loss
from fairlap.models.sources.named_axes import with_sizes
from fairlap.models.sources.onnx_graphs.imported_reference import roundings_inside_export
from fairlap.models.sources.sizes import bound_shapes, fill_of, given_shapes, require_known_ranges, rows
from fairlap.models.sources.tensorflow_files.kept_signal import keep_signal
from fairlap.models.sources.tensorflow_files.keras_backends import BACKENDS
from fairlap.models.sources.tensorflow_files.keras_exports import FILES, exported_to_onnx, exported_to_openvino
from fairlap.models.sources.tensorflow_files.keras_models import KerasModel, in_double, load_keras, use_backend
from fairlap.models.spec import Dtype, Tensor
from fairlap.request.fields.source import Source
from fairlap.request.work import Precision

_IN_FLOAT64 = "the Keras model in float64 on TensorFlow"
_IN_FLOAT32 = "no float64 reference: compared with Keras on TensorFlow, since a layer does not compute in float64"
_ON = {"tensorflow": "Keras on TensorFlow", "jax": "Keras on JAX", "torch": "Keras on PyTorch"}

_NOT_DIFFERENTIATED = dict.fromkeys(("litert", "openvino", "onnx"), Route(why_not="it runs models in inference only"))

_PRECISIONS: tuple[Precision, ...] = ("fp32", "fp16", "bf16", "tf32")

_SCALED = "scaled.keras"  # the model with weights that keep its signal, where its own do not


class KerasFile(SourceKind):
    title = "Keras"
    suffixes = (".keras",)
    starts = "python"  # for the export from Keras on PyTorch
    no_gradients = ""
    names_dimensions = True

    @classmethod
    def check(cls, source: Source) -> None:
        require_archive(source, "not a .keras file")

    @classmethod
    def open(cls, source: Source, folder: Path) -> Opened:
        return opened_keras(Path(source.path), source, folder, trust=source.trust)

    @classmethod
    def implementation(cls, bundle: Bundle, folder: Path, framework: str) -> Any:
        source = bundle.source
        return implementation_of_keras(Path(source.path), folder, framework, source, trust=source.trust)

    @classmethod
    def learner(cls, source: Source, folder: Path) -> Learner:
        from fairlap.models.sources.learning.keras_learner import learner_of_keras

        return learner_of_keras(Path(source.path), source, kind_of_loss(source.loss), trust=source.trust)


def opened_keras(
    file: Path,
    source: Source,
    folder: Path,
    *,
    trust: bool,
    example: Sequence[np.ndarray] | None = None,
    sized: bool = False,
) -> Opened:
    """Open a Keras file; ``example`` are inputs that come with the model, in its order.

    One that is ``sized`` was made for sizes of the request, of which there may be several.
    """
    use_backend("tensorflow")
    model = KerasModel(load_keras(file, trust=trust))
    model.require_float32()
    names = list(model.inputs)
    require_known_ranges(names, source)
    own = None if example is None else dict(zip(names, example, strict=True))
    declared = with_sizes({name: tuple(each.shape) for name, each in model.inputs.items()}, source)
    given = given_shapes(inputs_of(source), declared, source)
    given = given or shapes_of([own] if own else [], names)
    shapes = bound_shapes(declared, msgspec.structs.replace(source, dims=()), given)
    dtypes = {name: _dtype(name, each) for name, each in model.inputs.items()}
    tensors = [
        Tensor(name, shapes[name], fill_of(name, dtypes[name], rows(model.rows_of(name)), source), dtypes[name])
        for name in names
    ]
    scaled = None if sized or source.dims else _scaled(model, tensors, own, source, folder)
    if scaled is not None:
        file = folder / _SCALED
        model = KerasModel(load_keras(file, trust=trust))
    zeros = {tensor.name: np.zeros(tensor.sized(1), tensor.dtype) for tensor in tensors}
    results = dict(zip(model.outputs, model(zeros), strict=True))
    double = _Named(in_double(file, trust=trust))
    exact = all(each.dtype != np.float32 for each in double(model.weights(), zeros).values())
    how = _IN_FLOAT64 if exact else _IN_FLOAT32
    routes = {
        **{name: Route(f"native, {_ON[name]}", precisions=_PRECISIONS) for name in BACKENDS},
        **_elsewhere(model, file, tensors, folder, source, trust=trust),
    }
    return Opened(
        inputs=tuple(tensors),
        outputs=tuple(model.outputs),
        output_types={name: _dtype(name, each) for name, each in results.items()},
        weights=model.weights(),
        forward=double if exact else _Named(model),
        in_float32=_Named(model) if exact else None,
        roundings_inside=roundings_inside_export(folder / FILES["onnx"]),
        routes=routes,
        reference=how,
        example=own,
        notices=(*([] if exact else [Notice("W_NO_REFERENCE", how)]), *([] if scaled is None else [scaled])),
    )


def _scaled(
    model: KerasModel, tensors: Sequence[Tensor], example: Arrays | None, source: Source, folder: Path
) -> Notice | None:
    """Save the model with weights that keep its signal, where its own let none through; None where they do.

    Training, scores and comparisons with other files or sizes use the model's own weights.
    """
    if source.loss or source.metrics or source.exported or source.mix is not None:
        return None
    given = inputs_of(source)
    sets = input_sets(tensors, given, None if source.ranges else example, {"inputs": 0, "changed": 1})
    notice = keep_signal(model, sets["inputs"], sets["changed"])
    if notice is not None:
        model.model.save(folder / _SCALED)
    return notice


def _elsewhere(
    model: KerasModel, file: Path, tensors: Sequence[Tensor], folder: Path, source: Source, *, trust: bool
) -> dict[str, Route]:
    """Export it for frameworks that run a model in inference only."""
    if source.loss:
        return dict(_NOT_DIFFERENTIATED)
    if source.unconverted:
        return {}
    litert = Route("from Keras on TensorFlow by TensorFlow's converter")
    if source.exported:
        return {"litert": litert}
    return {
        "litert": litert,
        "openvino": exported_to_openvino(model, tensors, folder),
        "onnx": exported_to_onnx(file, tensors, folder, trust=trust),
    }


def implementation_of_keras(file: Path, folder: Path, framework: str, source: Source, *, trust: bool) -> Any:
    file = scaled if (scaled := folder / _SCALED).is_file() else file
    if framework in FILES:
        return OnnxOnDisk(folder / FILES[framework])
    return BACKENDS[framework](file, source, trust=trust)


class _Named:
    def __init__(self, model: KerasModel) -> None:
        self._model = model

    def __call__(self, weights: Arrays, inputs: Arrays) -> dict[str, np.ndarray]:
        self._model.assign(weights)
        found = self._model({name: np.asarray(array) for name, array in inputs.items()})
        return {name: np.asarray(each) for name, each in zip(self._model.outputs, found, strict=True)}


def _dtype(name: str, tensor: Any) -> Dtype:
    kind = tensor.dtype
    return known_dtype(name, kind if isinstance(kind, str) else kind.name)


KIND = KerasFile
