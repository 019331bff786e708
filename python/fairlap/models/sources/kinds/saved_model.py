"""SavedModel folders: native in TensorFlow and OpenVINO, and in LiteRT through TensorFlow's converter."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.engine.measurement import Notice
from fairlap.errors import FairlapError, cause_of, described
from fairlap.models.arrays import Arrays
from fairlap.models.draw import draw_inputs
from fairlap.models.sources.contract import (
    Bundle,
    Forward,
    Opened,
    Route,
    SourceError,
    SourceKind,
    known_dtype,
    link_out_of_folder,
)
from fairlap.models.sources.given_data.reading import inputs_of
from fairlap.models.sources.imported import OnnxOnDisk
from fairlap.models.sources.onnx_graphs.binding import require_memory
from fairlap.models.sources.sizes import bound_shapes, fill_of, given_shapes, require_known_ranges
from fairlap.models.sources.tensorflow_files.tensorflow_graphs import DoubleFunction, SavedFunction
from fairlap.models.sources.tensorflow_files.tensorflow_operators import require_harmless
from fairlap.models.spec import Spec, Tensor
from fairlap.request.fields.source import Source

_OPENVINO_FILE = "model.xml"
_NO_CONVERSION = "there is no conversion from a SavedModel"
_IN_FLOAT64 = "the frozen TensorFlow graph with every type float64"
_IN_FLOAT32 = "no float64 reference: compared with TensorFlow in float32"
_MOST_GRAPH_BYTES = 2**31  # of a protobuf message
_AGREES = 1e-3  # relative to the largest output: what another model would exceed


class SavedModelFolder(SourceKind):
    title = "SavedModel"
    no_gradients = "a SavedModel is frozen for inference"

    @classmethod
    def recognises(cls, text: str) -> bool:
        return os.path.isfile(f"{text}/saved_model.pb")  # noqa: PTH113  (a Path raises where the text is too long)

    @classmethod
    def check(cls, source: Source) -> None:
        path = Path(source.path)
        if (size := (path / "saved_model.pb").stat().st_size) >= _MOST_GRAPH_BYTES:
            raise SourceError(f"{source.text}/saved_model.pb has {size / 1e9:.1f} GB, which no graph can have")
        _require_own_files(source)
        require_memory(sum(file.stat().st_size for file in path.rglob("*") if file.is_file()), source.text)

    @classmethod
    def open(cls, source: Source, folder: Path) -> Opened:
        path = Path(source.path)
        if not source.trust:
            require_harmless(path)
        saved = SavedFunction(path)
        names = list(saved.inputs)
        require_known_ranges(names, source)
        given = inputs_of(source)
        declared = {name: _sizes(name, spec) for name, spec in saved.inputs.items()}
        shapes = bound_shapes(declared, source, given_shapes(given, declared, source))
        dtypes = {name: known_dtype(name, spec.dtype.name) for name, spec in saved.inputs.items()}
        tensors = tuple(
            Tensor(name, shapes[name], fill_of(name, dtypes[name], None, source), dtypes[name]) for name in names
        )
        forward, why = _reference(saved, tensors)
        how = f"{_IN_FLOAT32}, since {why}" if why else _IN_FLOAT64
        return Opened(
            inputs=tensors,
            outputs=tuple(saved.outputs),
            output_types={name: known_dtype(name, spec.dtype.name) for name, spec in saved.outputs.items()},
            weights=saved.weights(),
            forward=forward,
            in_float32=None if why else saved.forward,
            routes={
                "tensorflow": Route("native", precisions=("fp32",)),
                "litert": Route("from TensorFlow by its converter", precisions=("fp32",)),
                "openvino": _openvino(path, folder / _OPENVINO_FILE, saved, shapes),
                **dict.fromkeys(("onnx", "torch", "jax"), Route(why_not=_NO_CONVERSION)),
            },
            reference=how,
            notices=(Notice("W_NO_REFERENCE", how),) if why else (),
        )

    @classmethod
    def implementation(cls, bundle: Bundle, folder: Path, framework: str) -> Any:
        if framework == "openvino":
            return OnnxOnDisk(folder / _OPENVINO_FILE)
        return _Native(Path(bundle.source.path))


class _Native:
    def __init__(self, path: Path) -> None:
        self._path = path

    def build(self, weights: Arrays, dtype: Any = None) -> Any:
        import tensorflow as tf

        saved = SavedFunction(self._path)

        class Module(tf.Module):
            def __init__(self) -> None:
                super().__init__()
                self.loaded, self.variables_by_name = saved.loaded, saved.variables

            def __call__(self, inputs: Mapping[str, Any]) -> tuple[Any, ...]:
                return saved(inputs)

        return Module()

    def canonical(self, _name: str, array: Any) -> Any:
        return array


def _require_own_files(source: Source) -> None:
    """TensorFlow follows links, waits for pipes and reads devices without an end."""
    folder = Path(source.path).resolve()
    for file in folder.rglob("*"):
        name = file.relative_to(folder)
        try:
            target = file.resolve(strict=True)
        except (OSError, RuntimeError):  # the latter of links in a circle, before Python 3.13
            raise SourceError(f"{source.text}/{name} is a link that leads to no file") from None
        if not (target.is_file() or target.is_dir()):
            raise SourceError(f"{source.text}/{name} is neither a file nor a folder")
        if not (source.trust or target.is_relative_to(folder)):
            raise link_out_of_folder(f"{source.text}/{name}")


def _reference(saved: SavedFunction, tensors: tuple[Tensor, ...]) -> tuple[Forward, str]:
    """In float64 where the rewritten graph runs, gives float64, and is the same model. Else why it does not."""
    weights = saved.weights()
    inputs = draw_inputs(Spec("", "", tensors, (), (), 0, None, ""), 1, 0)
    expected = saved.forward(weights, inputs)
    try:
        double = DoubleFunction(saved)
        found = double(weights, inputs)
    except FairlapError as error:
        return saved.forward, str(error)
    except Exception as error:  # TensorFlow has no float64 kernel for some operators
        return saved.forward, f"its graph cannot be computed in float64 ({described(error)})"
    for name, array in expected.items():
        off = np.abs(found[name].astype(np.float64) - array.astype(np.float64)).max(initial=0.0)
        if array.dtype.kind == "f" and (found[name].dtype != np.float64 or not off <= _AGREES * np.abs(array).max()):
            return saved.forward, f"its graph in float64 gives another {name}"
    return double, ""


def _openvino(path: Path, file: Path, saved: SavedFunction, shapes: Mapping[str, tuple[int, ...]]) -> Route:
    try:
        import openvino

        model = openvino.Core().read_model(path)
        for ports, names in ((model.inputs, saved.inputs), (model.outputs, saved.outputs)):
            by_name = {name: port for port in ports for name in port.get_names()}
            for name in names:
                if name not in by_name:
                    return Route(why_not=f"OpenVINO reads no tensor named {name}")
                by_name[name].get_tensor().set_names({name})
        model.reshape({name: list(shape) for name, shape in shapes.items()})
        openvino.save_model(model, file, compress_to_fp16=False)
    except ModuleNotFoundError:
        return Route(why_not="the folder is read by the package openvino, which is not installed here")
    except Exception as error:  # OpenVINO raises its own errors
        return Route(why_not=cause_of(error))
    return Route("native", holds_weights=False)


def _sizes(name: str, spec: Any) -> tuple[int | None, ...]:
    if spec.shape.rank is None:
        raise SourceError(f"the SavedModel does not say how many dimensions {name} has", code="E_SHAPES")
    return tuple(spec.shape)


KIND = SavedModelFolder
