"""OpenVINO's own files, an ``.xml`` with its ``.bin``: native in OpenVINO alone, which computes nothing in float64."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.engine.measurement import Notice
from fairlap.errors import cause_of
from fairlap.models.arrays import Arrays
from fairlap.models.sources.contract import Bundle, Opened, Route, SourceError, SourceKind, known_dtype
from fairlap.models.sources.given_data.reading import inputs_of
from fairlap.models.sources.imported import OnnxOnDisk
from fairlap.models.sources.onnx_graphs.binding import require_memory
from fairlap.models.sources.sizes import bound_shapes, fill_of, given_shapes, require_known_ranges
from fairlap.models.spec import Tensor
from fairlap.request.fields.source import Source

_FILE = "model.xml"
_START_BYTES = 4096  # in which the first element is looked for
_HOW = "no float64 reference: compared with OpenVINO in float32"
_NO_CONVERSION = "there is no conversion from OpenVINO's files"


class OpenVinoFile(SourceKind):
    title = "OpenVINO"
    suffixes = (".xml",)
    no_gradients = "OpenVINO's file has operators for inference alone"

    @classmethod
    def files(cls, source: Source) -> tuple[Path, ...]:
        path = Path(source.path)
        weights = path.with_suffix(".bin")
        return (path, weights) if weights.is_file() else (path,)

    @classmethod
    def readable(cls, source: Source) -> tuple[Path, ...]:
        return cls.files(source)

    @classmethod
    def check(cls, source: Source) -> None:
        path = Path(source.path)
        try:
            require_memory(sum(file.stat().st_size for file in cls.files(source)), source.text)
            with path.open("rb") as file:
                start = file.read(_START_BYTES)
        except OSError as error:
            raise SourceError(f"cannot read {path}: {error.strerror}") from None
        if b"<net" not in start:
            raise SourceError(f"{source.text} is damaged, or not a model of OpenVINO")

    @classmethod
    def open(cls, source: Source, folder: Path) -> Opened:
        model = _read(source)
        inputs = {_name(port): port for port in model.inputs}
        outputs = {_name(port): port for port in model.outputs}
        require_known_ranges(list(inputs), source)
        declared = {name: _sizes(port) for name, port in inputs.items()}
        given = inputs_of(source)
        shapes = bound_shapes(declared, source, given_shapes(given, declared, source))
        held = _constants(model)
        try:
            model.reshape({port: list(shapes[name]) for name, port in inputs.items()})
        except RuntimeError as error:
            raise SourceError(f"OpenVINO cannot bind the sizes of {source.text}: {cause_of(error)}") from None
        forward = _OnOpenVino(model, list(inputs), list(outputs))
        _save(model, [*inputs, *outputs], folder / _FILE)
        dtypes = {name: _dtype(name, port) for name, port in inputs.items()}
        few_bits = tuple(sorted({str(each.dtype) for each in held.values()} - {"float32"}))
        return Opened(
            inputs=tuple(
                Tensor(name, shapes[name], fill_of(name, dtypes[name], None, source), dtypes[name]) for name in inputs
            ),
            outputs=tuple(outputs),
            output_types={name: _dtype(name, port) for name, port in outputs.items()},
            weights={name: array.astype(np.float32, copy=False) for name, array in held.items()},
            forward=forward,
            routes={
                "openvino": Route("native", holds_weights=False, precisions=("fp32", "fp16", "bf16")),
                **dict.fromkeys(("onnx", "torch", "jax", "tensorflow"), Route(why_not=_NO_CONVERSION)),
            },
            reference=_HOW,
            notices=(Notice("W_NO_REFERENCE", _HOW), *_notices(few_bits)),
            own_types=few_bits,
        )

    @classmethod
    def implementation(cls, bundle: Bundle, folder: Path, framework: str) -> Any:
        return OnnxOnDisk(folder / _FILE)


def _read(source: Source) -> Any:
    try:
        import openvino
    except ModuleNotFoundError:
        raise SourceError(f"{source.text} is read with the package openvino; install it") from None
    try:
        return openvino.Core().read_model(source.path)
    except RuntimeError as error:
        raise SourceError(f"OpenVINO cannot load {source.text}: {cause_of(error)}") from None


def _name(port: Any) -> str:
    """Choose the shortest of its names, of which converters give several."""
    names = sorted(port.get_names(), key=lambda name: (len(name), name))
    return str(names[0] if names else port.get_node().get_friendly_name())


def _sizes(port: Any) -> tuple[int | None, ...]:
    shape = port.get_partial_shape()
    if shape.rank.is_dynamic:
        raise SourceError(f"the input {_name(port)} may have any number of sizes; write the file with some")
    return tuple(None if size.is_dynamic else size.get_length() for size in shape)


def _dtype(name: str, port: Any) -> Any:
    return known_dtype(name, str(np.dtype(port.get_element_type().to_dtype())))


def _constants(model: Any) -> dict[str, np.ndarray]:
    """Read arrays of floats, by the names of their nodes. By default OpenVINO writes them in float16."""
    found = {}
    for node in model.get_ordered_ops():
        if node.get_type_name() == "Constant" and node.get_element_type().get_type_name() in ("f32", "f16"):
            array = np.array(node.data)
            if array.ndim and array.size > 1:
                found[str(node.get_friendly_name())] = array
    return found


def _notices(few_bits: tuple[str, ...]) -> list[Notice]:
    if not few_bits:
        return []
    text = f"the file holds weights in {', '.join(few_bits)}, to which they were rounded when it was written"
    return [Notice("W_FILE_PRECISION", text)]


class _OnOpenVino:
    """In float32 with the file's own weights, whatever it is given."""

    def __init__(self, model: Any, inputs: list[str], outputs: list[str]) -> None:
        import openvino

        settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
        self._compiled = openvino.Core().compile_model(model, "CPU", settings)
        self._inputs, self._outputs = inputs, outputs
        self._types = [np.dtype(port.get_element_type().to_dtype()) for port in model.inputs]

    def __call__(self, _weights: Arrays, inputs: Arrays) -> Mapping[str, np.ndarray]:
        given = zip(self._inputs, self._types, strict=True)
        found = self._compiled([np.asarray(inputs[name]).astype(kind) for name, kind in given])
        return {name: np.array(found[place]) for place, name in enumerate(self._outputs)}


def _save(model: Any, names: list[str], file: Path) -> None:
    """With one name for each input and output."""
    import openvino

    for port, name in zip((*model.inputs, *model.outputs), names, strict=True):
        port.get_tensor().set_names({name})
    openvino.save_model(model, file, compress_to_fp16=False)


KIND = OpenVinoFile
