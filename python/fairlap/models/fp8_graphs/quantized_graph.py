"""ONNX graphs whose products read fp8: pairs of QuantizeLinear and DequantizeLinear around products in float32.

A runtime with kernels of fp8 replaces pairs and product by one of them; others compute the product in float32, of
numbers that fp8 can hold. ONNX Runtime's own quantizer takes neither convolutions in fp8 nor weights by channel, and
its scales saturate the largest activations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.errors import FairlapError, described
from fairlap.models.fp8_graphs.activation_ranges import largest_values
from fairlap.models.fp8_graphs.fp8_numbers import FP8, rounded_to_fp8, scales_for, scales_of
from fairlap.models.onnx_import.subgraphs import graphs_under

PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
OPSET, _IR_VERSION = 21, 10
"""Opset 19 has fp8 with zero points, which name the type. With them ONNX Runtime 1.32 drops a Relu in front, as if the
steps were unsigned; since opset 21 an attribute names the type."""
_FLOAT, _FP8 = 1, 17  # of ONNX's TensorProto.DataType
_CHANNELS_OF_KERNELS = {"Conv": 0, "ConvTranspose": 1}

Array = npt.NDArray[Any]


class NotInFp8(FairlapError):
    """A graph that cannot be written in fp8; the message has the reason."""


@dataclass(frozen=True)
class GraphInFp8:
    model: Any
    changed: int  # products that read fp8
    unchanged: int  # others, as of other types than float32


def in_fp8(model: Any, sets: Iterable[Mapping[str, Array]]) -> GraphInFp8:
    """Quantize what products read: constant weights by channel, activations by the largest that the sets lead to.

    The model may be changed in place. Raises NotInFp8.
    """
    model = _with_fp8(model)
    pairs = _Pairs(model)
    products = [node for node in model.graph.node if _is_product(node)]
    taken = [node for node in products if pairs.takes(node)]
    if not taken:
        raise NotInFp8("the graph has no product of float32 numbers")
    read = dict.fromkeys(name for node in taken for name in node.input[:2] if name not in pairs.weights)
    pairs.largest = largest_values(model, list(read), sets)
    if endless := [name for name, value in pairs.largest.items() if not np.isfinite(value)]:
        raise NotInFp8(f"inputs of the calibration lead to values that are not finite, in {endless[0]}")
    pairs.put_around_products()
    return GraphInFp8(model, len(taken), len(products) - len(taken))


def _with_fp8(model: Any) -> Any:
    from onnx import version_converter

    own = next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), OPSET)
    if own < OPSET:
        try:
            model = version_converter.convert_version(model, OPSET)
        except Exception as error:  # it raises several, each with the operator that it cannot convert
            why = described(error)
            raise NotInFp8(f"fp8 needs opset {OPSET} of ONNX, to which opset {own} is not converted: {why}") from None
    model.ir_version = max(model.ir_version, _IR_VERSION)
    return model


class _Pairs:
    """The nodes in front of each product, and their tensors."""

    def __init__(self, model: Any) -> None:
        from onnx import shape_inference

        self._graph = model.graph
        found = shape_inference.infer_shapes(model).graph
        values = (*found.input, *found.output, *found.value_info)
        self._types = {each.name: each.type.tensor_type.elem_type for each in values}
        self._types |= {each.name: each.data_type for each in self._graph.initializer}
        floats = (each for each in self._graph.initializer if each.data_type == _FLOAT)
        self.weights = {each.name: each for each in floats if len(each.dims) > 1}
        self.largest: Mapping[str, float] = {}  # of activations, by name
        self._written: dict[tuple[str, int | None], str] = {}  # what the numbers of a weight are named
        self._readers = 0

    def takes(self, node: Any) -> bool:
        return _is_product(node) and all(self._types.get(name) == _FLOAT for name in node.input[:2])

    def put_around_products(self) -> None:
        graph = self._graph
        nodes = [each for node in list(graph.node) for each in self._with_pairs(node)]
        del graph.node[:]
        graph.node.extend(nodes)
        read = {name for each in graphs_under(graph) for node in each.node for name in node.input}
        read |= {each.name for each in graph.output}
        _keep(graph.initializer, lambda each: each.name in read)
        _keep(graph.input, lambda each: each.name in read or each.name not in self.weights)

    def _with_pairs(self, node: Any) -> Iterator[Any]:
        if self.takes(node):
            for place in range(2):
                name = node.input[place]
                if name in self.weights:
                    node.input[place], made = self._weight(name, _channels(node, place, len(self.weights[name].dims)))
                else:
                    node.input[place], made = self._activation(name)
                yield from made
        yield node

    def _weight(self, name: str, axis: int | None) -> tuple[str, list[Any]]:
        """Write a weight in fp8, once for each axis of its scales."""
        from onnx import helper, numpy_helper

        if (name, axis) in self._written:
            return self._written[name, axis], []
        array = numpy_helper.to_array(self.weights[name])
        scales = scales_of(array, axis)
        stem = name if all(each != name for each, _ in self._written) else f"{name}/{axis}"
        spread = scales if axis is None else scales.reshape([-1 if at == axis else 1 for at in range(array.ndim)])
        content = rounded_to_fp8(array / spread).astype(np.dtype(FP8))
        self._graph.initializer.append(
            helper.make_tensor(f"{stem}/fp8", _FP8, content.shape, content.tobytes(), raw=True)
        )
        made = self._written[name, axis] = f"{stem}/numbers"
        attributes = {} if axis is None else {"axis": axis}
        return made, [
            helper.make_node("DequantizeLinear", [f"{stem}/fp8", self._scale(stem, scales)], [made], **attributes)
        ]

    def _activation(self, name: str) -> tuple[str, list[Any]]:
        """Each reader has its own pair, which a runtime fuses with it."""
        from onnx import helper

        self._readers += 1
        stem = f"{name}/{self._readers}"
        scale, made = self._scale(stem, scales_for(self.largest[name])), f"{stem}/numbers"
        return made, [
            helper.make_node("QuantizeLinear", [name, scale], [f"{stem}/fp8"], output_dtype=_FP8),
            helper.make_node("DequantizeLinear", [f"{stem}/fp8", scale], [made]),
        ]

    def _scale(self, stem: str, scales: Array) -> str:
        from onnx import numpy_helper

        self._graph.initializer.append(numpy_helper.from_array(scales, f"{stem}/scale"))
        return f"{stem}/scale"


def _is_product(node: Any) -> bool:
    return node.op_type in PRODUCTS and len(node.input) > 1


def _channels(node: Any, place: int, rank: int) -> int | None:
    """Find the axis of a weight that a product does not add up over; None for a factor on the left."""
    if place == 0:
        return None
    if node.op_type in _CHANNELS_OF_KERNELS:
        return _CHANNELS_OF_KERNELS[node.op_type]
    transposed = any(each.name == "transB" and each.i for each in node.attribute)
    return rank - 2 if transposed else rank - 1


def _keep(messages: Any, wanted: Any) -> None:
    kept = [each for each in messages if wanted(each)]
    del messages[:]
    messages.extend(kept)
