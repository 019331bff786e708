"""ONNX files: native in ONNX Runtime and OpenVINO, and through fairlap's importer in the other frameworks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from fairlap.errors import described
from fairlap.models.arrays import Arrays
from fairlap.models.onnx_import.errors import OperatorsUnsupported
from fairlap.models.onnx_import.model_file import read_model
from fairlap.models.sources.contract import Bundle, Forward, Opened, Route, SourceError, SourceKind
from fairlap.models.sources.imported import IMPORTED, Imported, OnnxOnDisk, imported_reference
from fairlap.models.sources.inputs import given_inputs, shapes_of
from fairlap.models.sources.onnx_graphs.binding import (
    bound_model,
    external_files,
    input_values,
    require_room,
    save_model,
)
from fairlap.models.sources.onnx_graphs.ranges import integer_bounds
from fairlap.models.sources.onnx_graphs.reference import DoubleGraph
from fairlap.models.sources.onnx_graphs.work import most_elements, multiplications
from fairlap.models.sources.sizes import fill_of, require_known_ranges
from fairlap.models.spec import Dtype, Tensor
from fairlap.request.source import Source

BOUND = "model.onnx"


class OnnxFile(SourceKind):
    title = "ONNX"
    suffixes = (".onnx",)

    @classmethod
    def files(cls, source: Source) -> tuple[Path, ...]:
        path = Path(source.path)
        return (path, *external_files(read_model(path), path.parent))

    @classmethod
    def open(cls, source: Source, folder: Path) -> Opened:
        given = given_inputs(source.inputs, source.folder)
        values = input_values(read_model(Path(source.path)))
        model = bound_model(source, shapes_of(given, [value.name for value in values], source))
        found = opened_graph(model, source, folder, Route("native"))
        names = {axis.dim_param for value in values for axis in value.type.tensor_type.shape.dim}
        return replace(found, dims=tuple(name for name, _ in source.dims if name in names))

    @classmethod
    def implementation(cls, bundle: Bundle, folder: Path, framework: str) -> Any:
        return implementation_of_graph(folder, framework)


def opened_graph(model: Any, source: Source, folder: Path, native: Route) -> Opened:
    """Write a bound graph into the folder, for every framework that reads it or gets it through the importer."""
    file = folder / BOUND
    save_model(model, file)
    weights, forward, how, missing = _reference(model, file, source.text)
    imported = Route(why_not=missing) if missing else Route(IMPORTED)
    return Opened(
        inputs=tuple(tensors_of(model, source)),
        outputs=tuple(value.name for value in model.graph.output),
        output_types={value.name: _dtype(value) for value in model.graph.output},
        weights=weights,
        forward=forward,
        routes={"onnx": native, **dict.fromkeys(("torch", "jax", "tensorflow"), imported)},
        reference=how,
        multiplications=multiplications(model),
    )


def implementation_of_graph(folder: Path, framework: str) -> Any:
    file = folder / BOUND
    return OnnxOnDisk(file) if framework in ("onnx", "openvino") else Imported(file, framework)


def _reference(model: Any, file: Path, name: str) -> tuple[Arrays, Forward, str, str]:
    """By the importer; where it lacks an operator, by onnx's own evaluator, and nothing can be imported."""
    try:
        graph, forward = imported_reference(file)
    except OperatorsUnsupported as error:
        missing = str(error)
    else:
        require_room(max(tensor.size for tensor in graph.values.values()), name)
        return graph.weights, forward, "the ONNX graph in NumPy float64 by fairlap's importer", ""
    require_room(most_elements(model), name)
    try:
        evaluated = DoubleGraph(model)
    except Exception:  # of an operator or a type that it does not know either
        raise OperatorsUnsupported(missing) from None

    def forward_or_refuse(weights: Arrays, inputs: Arrays) -> Mapping[str, np.ndarray]:
        try:
            return evaluated(weights, inputs)
        except MemoryError:
            raise
        except Exception as error:  # its operators raise what they like
            raise OperatorsUnsupported(f"{missing}; and onnx.reference fails: {described(error)}") from None

    return float_weights(model), forward_or_refuse, "the ONNX graph in double precision by onnx.reference", missing


def tensors_of(model: Any, source: Source) -> list[Tensor]:
    """The inputs with what may be drawn for them: as asked for, or found by tracing, or plain."""
    values = input_values(model)
    require_known_ranges([value.name for value in values], source)
    bounds = integer_bounds(model)
    found = []
    for value in values:
        shape = tuple(axis.dim_value for axis in value.type.tensor_type.shape.dim)
        dtype = _dtype(value)
        found.append(Tensor(value.name, shape, fill_of(value.name, dtype, bounds.get(value.name), source), dtype))
    return found


def float_weights(model: Any) -> dict[str, np.ndarray]:
    """The float32 initializers, which every framework holds by name. Others are constants of the graph."""
    from onnx import TensorProto, numpy_helper

    return {
        tensor.name: numpy_helper.to_array(tensor)
        for tensor in model.graph.initializer
        if tensor.data_type == TensorProto.FLOAT
    }


def _dtype(value: Any) -> Dtype:
    from onnx import helper

    name = str(np.dtype(helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)))
    if name not in get_args(Dtype):
        raise SourceError(
            f"{value.name} is {name}; inputs and outputs may be {', '.join(get_args(Dtype))}", code="E_SOURCE"
        )
    return name  # type: ignore[return-value]


KIND = OnnxFile
