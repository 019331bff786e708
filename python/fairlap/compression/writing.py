"""Write the forms of an ONNX file, in a sandbox of a process: ``python -m fairlap.compression.writing``."""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fairlap.compression.forms import CODE, Form, WrittenForm
from fairlap.compression.zeros import with_share_of_zeros, with_two_of_four
from fairlap.errors import FairlapError, InvalidRequest, described
from fairlap.machine.programs.confined_home import moved_home
from fairlap.machine.programs.guardian import guarded
from fairlap.machine.programs.sandbox import confine
from fairlap.models.fp8_graphs.quantized_graph import NotInFp8, in_fp8
from fairlap.models.sources.confinement import explained, replies
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.given_data.reading import given_inputs
from fairlap.models.sources.inputs import of_tensors, shapes_of
from fairlap.models.sources.kinds.onnx_file import OnnxFile
from fairlap.models.sources.onnx_graphs.binding import declared_sizes, input_values
from fairlap.models.sources.sizes import bound_shapes
from fairlap.models.spec import Tensor
from fairlap.request.fields.source import Source

_BLOCK = 32
_PRODUCTS = ("MatMul", "Gemm", "Conv", "ConvTranspose")
_QUANTIZED = ("MatMulInteger", "ConvInteger", "DynamicQuantizeMatMul", "MatMulNBits", "DynamicQuantizeLSTM")
_MOST_SETS = 32
_WEIGHTS = {"per_channel": True, "reduce_range": True}
"""In int8 by channel, within seven bits: products with uint8 saturate on x86 processors without VNNI otherwise."""


class Order(msgspec.Struct, frozen=True):
    source: Source
    forms: tuple[Form, ...]
    folder: str  # where the files are written
    scratch: str


class Written(msgspec.Struct, frozen=True):
    forms: tuple[WrittenForm, ...] = ()
    code: str = ""
    message: str = ""


def written_forms(order: Order) -> tuple[WrittenForm, ...]:
    source = order.source
    files = OnnxFile.files(source)
    given = (Path(source.inputs),) if source.inputs else ()
    folder, scratch = Path(order.folder), Path(order.scratch)
    confine((*files, *given, moved_home((folder, scratch))), (folder, scratch))
    import onnx

    model = onnx.load(source.path)
    if not any(_weights_read(model, node) for node in model.graph.node):
        raise InvalidRequest(f"{source.shown} has no weights in float of products to compress", code=CODE)
    return tuple(_written(order, form, model) for form in order.forms)


def _written(order: Order, form: Form, model: Any) -> WrittenForm:
    import onnx

    made = onnx.ModelProto()
    made.CopyFrom(model)
    write: Mapping[str, Callable[[Order, Any], tuple[Any, int, int]]] = {
        "int8-dynamic": _dynamic,
        "int8-static": _static,
        "fp8": _in_fp8,
        "int4": _in_int4,
    }
    made, changed, unchanged = write[form.name](order, made) if form.name in write else _sparse(form, made)
    if not changed:
        raise InvalidRequest(f"{order.source.shown} has no product whose weights {form.name} could change", code=CODE)
    file = Path(order.folder) / f"{Path(order.source.path).stem}-{form.file_suffix}.onnx"
    onnx.checker.check_model(made)
    content = made.SerializeToString()
    file.write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    return WrittenForm(form.name, file.name, digest, len(content), changed, unchanged, _zeros(made))


def _sparse(form: Form, model: Any) -> tuple[Any, int, int]:
    from onnx import numpy_helper

    arrays = {each.name: each for each in model.graph.initializer}
    assert form.zeros is not None
    changed = unchanged = 0
    done: set[str] = set()
    for node in model.graph.node:
        name = _weights_read(model, node)
        if not name or name in done:
            continue
        done.add(name)
        weights = numpy_helper.to_array(arrays[name])
        if form.name.endswith("%"):
            found: np.ndarray | None = with_share_of_zeros(weights, form.zeros)
        else:
            found = with_two_of_four(weights, _added_up(node, weights))
        if found is None:
            unchanged += 1
            continue
        arrays[name].CopyFrom(numpy_helper.from_array(found, name))
        changed += 1
    return model, changed, unchanged


def _added_up(node: Any, weights: np.ndarray) -> int:
    """Find the axis of the weights that a product adds up over."""
    if node.op_type == "Conv":
        return 1
    if node.op_type == "ConvTranspose":
        return 0
    transposed = any(each.name == "transB" and each.i for each in node.attribute)
    return weights.ndim - 1 if transposed else weights.ndim - 2


def _dynamic(order: Order, model: Any) -> tuple[Any, int, int]:
    from onnxruntime.quantization import quantize_dynamic

    return _by_file(order, model, lambda given, to: quantize_dynamic(given, to, **_WEIGHTS))


def _static(order: Order, model: Any) -> tuple[Any, int, int]:
    """Quantize activations in uint8, between the smallest and the largest value that the inputs lead to."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    sets = _sets(order, model)

    class Sets(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._sets: Iterator[Mapping[str, Any]] = iter(sets)

        def get_next(self) -> dict[str, Any] | None:
            own = next(self._sets, None)
            return None if own is None else dict(own)

    def write(given: Path, to: Path) -> None:
        quantize_static(
            given,
            to,
            Sets(),
            quant_format=QuantFormat.QDQ,
            activation_type=QuantType.QUInt8,
            **_WEIGHTS,
        )

    return _by_file(order, model, write)


def _sets(order: Order, model: Any) -> list[dict[str, np.ndarray]]:
    """Read the inputs that the ranges are taken from, as the model takes them, and refuse those that have none."""
    from onnx import helper

    source, values = order.source, input_values(model)
    types: dict[str, Any] = {
        each.name: str(np.dtype(helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type))) for each in values
    }
    file, found = Path(source.inputs).name, []
    try:
        for own in given_inputs(source.inputs, source.folder)[:_MOST_SETS]:
            shapes = bound_shapes(declared_sizes(values), source, shapes_of([own], list(types), source))
            if others := {str(array.dtype) for array in own.values()} - {*types.values()}:
                raise SourceError(f"{', '.join(others)} in place of {', '.join({*types.values()})}")
            found.append(of_tensors(own, [Tensor(name, shapes[name], dtype=types[name]) for name in types]))
    except FairlapError as error:
        raise InvalidRequest(f"{file} gives no ranges: {error}", code=CODE) from None
    if not found or not all(array.size for own in found for array in own.values()):
        raise InvalidRequest(f"{file} holds no items to take ranges from", code=CODE)
    return found


def _by_file(order: Order, model: Any, write: Callable[[Path, Path], object]) -> tuple[Any, int, int]:
    """ONNX Runtime's quantizers read and write files."""
    import onnx

    made = Path(order.scratch) / "made.onnx"
    write(_prepared(order, model), made)
    return _counted(onnx.load(made))


def _prepared(order: Order, model: Any) -> Path:
    """Fold constants and normalisations as ONNX Runtime does before it quantizes."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    logging.getLogger().setLevel(logging.ERROR)  # it advises on the graph on every run
    given, prepared = (Path(order.scratch) / name for name in ("given.onnx", "prepared.onnx"))
    given.write_bytes(model.SerializeToString())
    quant_pre_process(given, prepared, skip_symbolic_shape=True)
    return prepared


def _in_fp8(order: Order, model: Any) -> tuple[Any, int, int]:
    import onnx

    try:
        made = in_fp8(onnx.load(_prepared(order, model)), _sets(order, model))
    except NotInFp8 as error:
        raise InvalidRequest(f"{order.source.shown} cannot be written in fp8: {error}", code=CODE) from None
    return made.model, made.changed, made.unchanged


def _in_int4(_: Order, model: Any) -> tuple[Any, int, int]:
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    logging.getLogger().setLevel(logging.ERROR)
    quantizer = MatMulNBitsQuantizer(model, bits=4, block_size=_BLOCK, is_symmetric=True)
    quantizer.process()
    return _counted(quantizer.model.model)


def _counted(model: Any) -> tuple[Any, int, int]:
    """Count the products that read quantized weights, and those that read them in float."""
    nodes = model.graph.node
    dequantized = {node.output[0] for node in nodes if node.op_type == "DequantizeLinear"}
    products = [node for node in nodes if node.op_type in _PRODUCTS]
    changed = sum(node.op_type in _QUANTIZED for node in nodes)
    changed += sum(len(node.input) > 1 and node.input[1] in dequantized for node in products)
    return model, changed, sum(bool(_weights_read(model, node)) for node in products)


def _weights_read(model: Any, node: Any) -> str:
    """Name the weights in float of a product; empty where there are none, as of one of two values."""
    if node.op_type not in _PRODUCTS or len(node.input) < 2:
        return ""
    floats = {each.name for each in model.graph.initializer if each.data_type == 1 and len(each.dims) > 1}
    return str(node.input[1]) if node.input[1] in floats else ""


def _zeros(model: Any) -> float:
    from onnx import numpy_helper

    arrays = [numpy_helper.to_array(each) for each in model.graph.initializer if each.data_type == 1]
    whole = sum(array.size for array in arrays)
    return sum(int((array == 0).sum()) for array in arrays) / whole if whole else 0.0


def main() -> None:
    guarded(sys.stdout.fileno())
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    answers = replies()
    try:
        written = Written(written_forms(order))
    except FairlapError as error:
        code, message = explained(order.source, error.code, str(error), error)
        written = Written(code=code, message=message)
    except Exception as error:
        traceback.print_exception(error)
        message = f"{order.source.shown} cannot be compressed: {described(error)}"
        code, message = explained(order.source, CODE, message, error)
        written = Written(code=code, message=message)
    answers.write(msgspec.json.encode(written))
    answers.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
