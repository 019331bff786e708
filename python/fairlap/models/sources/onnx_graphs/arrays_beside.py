"""Keep the large arrays of a bound graph in a file beside it, so that every process maps them and none holds copies.

They stay where the user's file has them, in another file or inside of the graph, unless that is too large to hold them.
Small ones are always inside, where what reads shapes and ranges looks for them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from fairlap.models.onnx_import.files.external_data import Place, place_of
from fairlap.models.onnx_import.files.model_file import array_of
from fairlap.models.onnx_import.subgraphs import graphs_under

DATA = "model.onnx.data"
_EXTERNAL = 1  # TensorProto.EXTERNAL
_LARGE_BYTES = 2**19
_MOST_INSIDE_BYTES = 2**28  # of the large ones together
_ALIGNMENT = 4096  # of maps, and more than any kernel asks for
_COPIED_BYTES = 2**24  # at once
_MOST_EXPORTED_INSIDE_BYTES = 2**26  # of the large ones of an export, which writing it copies several times


def external_tensors(model: Any) -> Iterator[Any]:
    """In initializers and in the attributes of nodes, subgraphs included."""
    yield from filter(_is_external, model.graph.initializer)
    yield from _external_further_in(model)


def _external_further_in(model: Any) -> Iterator[Any]:
    """All but the initializers of the graph itself."""
    whole = model.graph
    for graph in graphs_under(whole):
        tensors = [] if graph is whole else list(graph.initializer)
        for attribute in (attribute for node in graph.node for attribute in node.attribute):
            tensors += [attribute.t, *attribute.tensors]
        yield from filter(_is_external, tensors)


def with_arrays_beside(model: Any, folder: Path, to: Path) -> Any:
    """Write the large arrays into the folder ``to``, and return the model that finds them there.

    ``folder`` is the model's own, with its external data. The model itself is changed too.
    """
    large = [tensor for tensor in model.graph.initializer if _may_be_beside(tensor)]
    inside = [tensor for tensor in large if not _is_external(tensor)]
    if sum(map(_bytes_of, inside)) <= _MOST_INSIDE_BYTES:
        large, inside = list(filter(_is_external, large)), []
    names = {tensor.name for tensor in large}
    small = [tensor for tensor in model.graph.initializer if _is_external(tensor) and tensor.name not in names]
    for tensor in (*small, *_external_further_in(model)):
        put_inside(tensor, folder)
    if large:
        with (to / DATA).open("wb") as file:
            for tensor in large:
                _put_beside(tensor, folder, file)
    if inside:  # a message gives no memory back before it ends
        return type(model).FromString(model.SerializeToString())
    return model


def arrays_beside(file: Path) -> Path:
    """Name the file of the arrays of an exported graph."""
    return file.with_name(f"{file.name}.data")


def put_arrays_beside(model: Any, file: Path) -> None:
    """Write the large arrays of PyTorch's export beside the file that it will be in, one after the other.

    ``model`` is one of onnx_ir, whose arrays are those of the module.
    """
    import onnx_ir

    held = [value for value in model.graph.initializers.values() if value.const_value is not None]
    large = [value for value in held if value.const_value.nbytes > _LARGE_BYTES]
    if sum(value.const_value.nbytes for value in large) <= _MOST_EXPORTED_INSIDE_BYTES:
        return
    beside = arrays_beside(file)
    with beside.open("wb") as to:
        for value in large:
            tensor, offset = value.const_value, -(-to.tell() // _ALIGNMENT) * _ALIGNMENT
            to.seek(offset)
            to.write(np.ascontiguousarray(tensor.numpy()).reshape(-1).view(np.uint8).data)
            value.const_value = onnx_ir.ExternalTensor(
                beside.name,
                offset,
                tensor.nbytes,
                tensor.dtype,
                shape=tensor.shape,
                name=tensor.name,
                base_dir=file.parent,
            )


def with_arrays_inside(model: Any, folder: Path) -> Any:
    """Copy the model, with all of its arrays."""
    found = type(model)()
    found.CopyFrom(model)
    for tensor in external_tensors(found):
        put_inside(tensor, folder)
    return found


def put_inside(tensor: Any, folder: Path) -> None:
    array = array_of(tensor, folder)
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")
    tensor.raw_data = array.tobytes()


def _may_be_beside(tensor: Any) -> bool:
    has_bytes = _is_external(tensor) or tensor.HasField("raw_data")
    return has_bytes and all(size >= 0 for size in tensor.dims) and _bytes_of(tensor) > _LARGE_BYTES


def _is_external(tensor: Any) -> bool:
    return bool(tensor.data_location == _EXTERNAL)


def _bytes_of(tensor: Any) -> int:
    """0 where it has no numbers."""
    return int(math.prod(tensor.dims)) * _dtype_of(tensor).itemsize


def _dtype_of(tensor: Any) -> np.dtype[Any]:
    from onnx import helper

    try:
        found: np.dtype[Any] = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type))
    except (KeyError, TypeError):  # refused when the array is read
        found = np.dtype("V0")
    return found


def _put_beside(tensor: Any, folder: Path, file: IO[bytes]) -> None:
    offset = -(-file.tell() // _ALIGNMENT) * _ALIGNMENT
    file.seek(offset)
    if _is_external(tensor):
        _copy(place_of(tensor, folder, _dtype_of(tensor), tuple(tensor.dims)), file)
    else:
        file.write(tensor.raw_data)
    entries = {"location": DATA, "offset": offset, "length": file.tell() - offset}
    del tensor.external_data[:]
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    tensor.data_location = _EXTERNAL
    tensor.ClearField("raw_data")


def _copy(place: Place, to: IO[bytes]) -> None:
    """Read in pieces, not through a map: a file that becomes shorter meanwhile would end this process."""
    left = place.bytes
    with place.file.open("rb") as file:
        file.seek(place.offset)
        while left:
            piece = file.read(min(left, _COPIED_BYTES))
            if not piece:
                raise place.unreadable("it has become shorter")
            to.write(piece)
            left -= len(piece)
