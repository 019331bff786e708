"""Bind the dimensions of a user's ONNX model, and write it so that every framework reads the same sizes and weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairlap import quantity_text
from fairlap.errors import FairlapError
from fairlap.machine.available_memory import available_memory_bytes
from fairlap.models.onnx_import.dimensions import bound_inputs
from fairlap.models.onnx_import.files.external_data import file_inside
from fairlap.models.onnx_import.files.load import load_graph
from fairlap.models.onnx_import.files.model_file import read_model
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.onnx_graphs.arrays_beside import external_tensors, with_arrays_beside
from fairlap.models.sources.onnx_graphs.batch_axes import batch_axes
from fairlap.request.fields.source import Source

_COPIES = 3  # of the weights at once: as read, in float64
_MOST_TRIED_BYTES = 2**28  # of a file with which several sizes are tried
_COPIES_OF_MAPPED = 1.5  # of those that are in files: themselves, and the largest of them in float64


def require_memory(weight_bytes: int, name: str, *, copies: float = _COPIES) -> None:
    """Before anything is read: what is there must hold the weights and their float64 copies."""
    available = available_memory_bytes()
    if available is not None and copies * weight_bytes > available:
        raise SourceError(
            f"{name} has {quantity_text.size(weight_bytes)}; reading it and computing its reference takes about "
            f"{quantity_text.size(copies * weight_bytes)}, and {quantity_text.size(available)} are free",
            code="E_SOURCE_SIZE",
        )


def require_room(elements: int, name: str) -> None:
    """Before anything is computed: what is there must hold the largest of all values in float64, and its operands."""
    available, needed = available_memory_bytes(), _COPIES * 8 * elements
    if available is not None and needed > available:
        raise SourceError(
            f"{name} computes a value of {elements:,} numbers; its reference takes about "
            f"{quantity_text.size(needed)}, and {quantity_text.size(available)} are free",
            code="E_SOURCE_SIZE",
        )


def external_files(model: Any, folder: Path) -> tuple[Path, ...]:
    """List the files of external data in the model's folder; others are refused when the tensor is read."""
    locations = {
        entry.value for tensor in external_tensors(model) for entry in tensor.external_data if entry.key == "location"
    }
    inside = (file_inside(folder, location) for location in sorted(locations))
    return tuple(file for file in inside if file is not None)


def bound_model(source: Source, given: Mapping[str, tuple[int, ...]], folder: Path) -> Any:
    """Read the model with every size of its inputs known, and its large arrays in a file of the ``folder``.

    ``given`` are the shapes of the inputs that the user gives. They count where the request names no size.
    """
    path = Path(source.path)
    if path.is_file():
        require_memory(path.stat().st_size, source.text)
    model = read_model(path)
    if not model.graph.output:
        raise SourceError(f"{source.text} has no outputs, so there is nothing to compare", code="E_MODEL_FILE")
    values = input_values(model)
    _bind(values, source, given, batch_axes(model, values))
    del model.graph.value_info[:]  # they still hold the symbols
    external = sum(file.stat().st_size for file in external_files(model, path.parent) if file.is_file())
    require_memory(external, source.text, copies=_COPIES_OF_MAPPED)
    return with_arrays_beside(model, path.parent, folder)


def _bind(
    values: list[Any], source: Source, given: Mapping[str, tuple[int, ...]], batch_axis: Mapping[str, int]
) -> None:
    shapes = dict(source.shapes)
    dims = dict(source.dims)
    for axis in (axis for value in values for axis in value.type.tensor_type.shape.dim):
        if axis.HasField("dim_value") and axis.dim_value == 0:  # an input without elements shows nothing
            axis.ClearField("value")
    for value in values:
        sizes = shapes.get(value.name)
        if sizes is None and value.name in given and not _named(value, dims):
            sizes = shapes[value.name] = given[value.name]
        if sizes is None and source.batch is not None:
            _bind_batch(value, batch_axis.get(value.name, 0), source.batch, dims)
        if sizes is not None:
            _learn_symbols(value, sizes, dims)
    used = {axis.dim_param for value in values for axis in value.type.tensor_type.shape.dim}
    asked = set() if source.among_others else set(dict(source.dims))
    known = {name: size for name, size in dims.items() if name in used | asked}
    names = [value.name for value in values]
    tensors = bound_inputs(
        values, known, shapes, lambda sizes: _takes(Path(source.path), dict(zip(names, map(tuple, sizes), strict=True)))
    )
    for value, tensor in zip(values, tensors, strict=True):
        kind = value.type.tensor_type
        del kind.shape.dim[:]
        for size in tensor.shape:
            kind.shape.dim.add().dim_value = size


def _takes(path: Path, sizes: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether all operators take what comes of inputs of these sizes; not tried of a large file."""
    if path.stat().st_size > _MOST_TRIED_BYTES:
        return False
    try:
        load_graph(path, shapes=sizes)
    except FairlapError:
        return False
    return True


def input_values(model: Any) -> list[Any]:
    """Select the inputs that a caller gives: those without a default value."""
    defaults = {tensor.name for tensor in model.graph.initializer}
    values = [value for value in model.graph.input if value.name not in defaults]
    if not values:
        raise SourceError("the model has no inputs, so nothing could show that it computes", code="E_SOURCE_INPUTS")
    return values


def declared_sizes(values: list[Any]) -> dict[str, tuple[int | None, ...]]:
    """Sizes of the inputs as the file has them, None where it leaves one open."""
    return {
        value.name: tuple(
            axis.dim_value if axis.HasField("dim_value") and axis.dim_value > 0 else None
            for axis in value.type.tensor_type.shape.dim
        )
        for value in values
    }


def _bind_batch(value: Any, place: int, batch: int, dims: dict[str, int]) -> None:
    """Set this size where the file leaves it open; where it does not, the sizes must agree."""
    if not value.type.tensor_type.shape.dim:
        return
    axis = value.type.tensor_type.shape.dim[place]
    if axis.HasField("dim_value") and axis.dim_value != batch:
        which = "the first size" if place == 0 else f"size {place + 1}, the batch,"
        raise SourceError(
            f"{which} of {value.name} is {axis.dim_value} in the file, so the batch cannot be {batch}", code="E_SHAPES"
        )
    if axis.dim_param:
        dims.setdefault(axis.dim_param, batch)
    else:
        axis.dim_value = batch


def _named(value: Any, dims: Mapping[str, int]) -> bool:
    return any(axis.dim_param in dims for axis in value.type.tensor_type.shape.dim)


def _learn_symbols(value: Any, sizes: tuple[int, ...], dims: dict[str, int]) -> None:
    """Bind a symbol by one input's size for all; what does not fit is refused with the other shapes."""
    for axis, size in zip(value.type.tensor_type.shape.dim, sizes, strict=False):
        if axis.dim_param and dims.setdefault(axis.dim_param, size) != size:
            raise SourceError(
                f"{axis.dim_param} is {size} in the shape of {value.name}, and {dims[axis.dim_param]} elsewhere",
                code="E_SHAPES",
            )
