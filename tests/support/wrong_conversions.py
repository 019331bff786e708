"""ONNX graphs that were converted wrongly, each in one way that converters get wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
from fairlap.models.draw import rounded_to_bfloat16
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, shape_inference

Array = npt.NDArray[np.generic]


def wrong_conversions(model: ModelProto) -> Iterator[tuple[str, ModelProto]]:
    """Those that this graph has something for, by name."""
    for name, change in CHANGES.items():
        changed = ModelProto()
        changed.CopyFrom(model)
        if change(changed):
            yield name, changed


def _ignored_mask(model: ModelProto) -> bool:
    for value in model.graph.input:
        if "mask" in value.name:
            kind = value.type.tensor_type
            dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
            ones = np.ones([axis.dim_value for axis in kind.shape.dim], dtype)
            model.graph.initializer.append(numpy_helper.from_array(ones, "every token"))
            _replace_uses(model, value.name, "every token")
            return True
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype.kind == "f" and np.isneginf(array).any():
            tensor.CopyFrom(numpy_helper.from_array(np.zeros_like(array), tensor.name))
            return True
    return False


def _read_as_nhwc(model: ModelProto) -> bool:
    """Of an image, the bytes; of attention, the heads."""
    image = next((value for value in model.graph.input if len(value.type.tensor_type.shape.dim) == 4), None)
    if image is not None:
        batch, channels, height, width = (axis.dim_value for axis in image.type.tensor_type.shape.dim)
        _replace_uses(model, image.name, "turned")
        _constant(model, "last", np.array([batch, height, width, channels]))
        model.graph.node.insert(0, helper.make_node("Transpose", ["read"], ["turned"], perm=[0, 3, 1, 2]))
        model.graph.node.insert(0, helper.make_node("Reshape", [image.name, "last"], ["read"]))
        return True
    shapes = _shapes(model)
    for node in model.graph.node:
        if node.op_type == "Transpose" and len(shapes.get(node.output[0], ())) == 4:
            _constant(model, "turned", np.array(shapes[node.output[0]]))
            node.CopyFrom(helper.make_node("Reshape", [node.input[0], "turned"], list(node.output)))
            return True
    return False


def _clamped_ids(model: ModelProto) -> bool:
    """As a framework does that was built for a smaller table."""
    tables = {tensor.name: tensor.dims[0] for tensor in model.graph.initializer if len(tensor.dims) == 2}
    kinds = {value.name: value.type.tensor_type.elem_type for value in model.graph.input}
    gathers = [node for node in model.graph.node if node.op_type == "Gather" and node.input[1] in kinds]
    gathers = [node for node in gathers if node.input[0] in tables]
    if not gathers:
        return False
    largest = max(gathers, key=lambda node: tables[node.input[0]])
    rows, ids = tables[largest.input[0]], largest.input[1]
    _constant(model, "most", np.array(9 * rows // 10, helper.tensor_dtype_to_np_dtype(kinds[ids])))
    largest.input[1] = "clamped"
    model.graph.node.insert(0, helper.make_node("Min", [ids, "most"], ["clamped"]))
    return True


def _in_half(array: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return array.astype(np.float16).astype(np.float32)


def in_tf32(array: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return (np.ascontiguousarray(array).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def _rounded(to: Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float32]]) -> Callable[[ModelProto], bool]:
    def change(model: ModelProto) -> bool:
        for tensor, array in _weights(model):
            if np.isfinite(array).all():
                tensor.CopyFrom(numpy_helper.from_array(to(array), tensor.name))
        return True

    return change


def _changed_constant(model: ModelProto) -> bool:
    for tensor, array in _weights(model):
        if array.ndim == 1 and array.any():
            tensor.CopyFrom(numpy_helper.from_array(array * np.float32(1.001), tensor.name))
            return True
    return False


def _dropped_layer(model: ModelProto) -> bool:
    """Drop a branch next to a shortcut, in the middle of the network."""
    shapes, uses = _shapes(model), Counter(name for node in model.graph.node for name in node.input)
    sums = []
    for node in model.graph.node:
        if node.op_type == "Add" and len({shapes.get(name) for name in (*node.input, *node.output)} - {None}) == 1:
            shortcuts = [name for name in node.input if uses[name] > 1]
            if len(shortcuts) == 1:
                sums.append((node, shortcuts[0]))
    if not sums:
        return False
    node, shortcut = sums[len(sums) // 2]
    _replace_uses(model, node.output[0], shortcut)
    return True


def _transposed_weight(model: ModelProto) -> bool:
    """Of a shape that stays the same."""
    square = [
        (tensor, array)
        for tensor, array in _weights(model)
        if array.ndim >= 2 and array.shape[0] == array.shape[1] > 1 and np.isfinite(array).all()
    ]
    if not square:
        return False
    tensor, array = square[len(square) // 2]
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array.swapaxes(0, 1)), tensor.name))
    return True


def _other_epsilon(model: ModelProto) -> bool:
    """Use the epsilon that other frameworks have where nothing is given."""
    changed = False
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "epsilon":
                usual = 1e-3 if node.op_type == "BatchNormalization" else 1e-5
                attribute.f = usual if abs(attribute.f - usual) > 0.1 * usual else usual / 10
                changed = True
    return changed


def _swapped_inputs(model: ModelProto) -> bool:
    """Swap the last two inputs that have the same shape and type."""
    values = list(model.graph.input)
    for number, second in reversed(list(enumerate(values))):
        for first in reversed(values[:number]):
            if first.type == second.type:
                _replace_uses(model, first.name, "aside")
                _replace_uses(model, second.name, first.name)
                _replace_uses(model, "aside", second.name)
                return True
    return False


def _other_gelu(model: ModelProto) -> bool:
    nodes = [node for node in model.graph.node if node.op_type == "Gelu"]
    for node in nodes:
        was = next((each.s for each in node.attribute if each.name == "approximate"), b"none")
        del node.attribute[:]
        node.attribute.append(helper.make_attribute("approximate", "none" if was == b"tanh" else "tanh"))
    return bool(nodes)


def _unscaled_attention(model: ModelProto) -> bool:
    producers = {name: node for node in model.graph.node for name in node.output}
    scalars = _scalars(model)
    changed = False
    for node in list(model.graph.node):
        scaling = _scaling_before(node, producers, scalars) if node.op_type == "Softmax" else None
        if scaling is not None:
            kept = next(name for name in scaling.input if name not in scalars)
            _replace_uses(model, scaling.output[0], kept)
            changed = True
    return changed


def _scaling_before(
    node: NodeProto, producers: Mapping[str, NodeProto], scalars: set[str], depth: int = 3
) -> NodeProto | None:
    """Find the scaling of scores, which come first among the inputs of what adds a mask to them."""
    for name in node.input:
        before = producers.get(name)
        if before is None or depth == 0:
            continue
        if before.op_type in ("Mul", "Div") and scalars.intersection(before.input):
            return before
        found = _scaling_before(before, producers, scalars, depth - 1)
        if found is not None:
            return found
    return None


def _asymmetric_padding(model: ModelProto) -> bool:
    """More at the end than at the start, as where padding is named "same" and the stride is two."""
    changed = False
    for node in model.graph.node:
        attributes = {each.name: list(each.ints) for each in node.attribute}
        pads, strides = attributes.get("pads", []), attributes.get("strides", [])
        if len(set(pads)) == 1 and pads[0] > 0 and strides and strides[0] == 2:
            half = len(pads) // 2
            for each in node.attribute:
                if each.name == "pads":
                    each.ints[:] = [pads[0] - 1] * half + [pads[0] + 1] * half
            changed = True
    return changed


CHANGES: Mapping[str, Callable[[ModelProto], bool]] = {
    "an ignored mask": _ignored_mask,
    "another layout": _read_as_nhwc,
    "clamped ids": _clamped_ids,
    "weights in bfloat16": _rounded(rounded_to_bfloat16),
    "weights in float16": _rounded(_in_half),
    "weights in TF32": _rounded(in_tf32),
    "a constant changed by a thousandth": _changed_constant,
    "a dropped layer": _dropped_layer,
    "a transposed weight": _transposed_weight,
    "another epsilon": _other_epsilon,
    "swapped inputs": _swapped_inputs,
    "the other GELU": _other_gelu,
    "attention without scaling": _unscaled_attention,
    "asymmetric padding": _asymmetric_padding,
}


def _replace_uses(model: ModelProto, old: str, new: str) -> None:
    for node in model.graph.node:
        for place, name in enumerate(node.input):
            if name == old:
                node.input[place] = new


def _constant(model: ModelProto, name: str, array: Array) -> None:
    model.graph.initializer.append(numpy_helper.from_array(array, name))


def _weights(model: ModelProto) -> list[tuple[TensorProto, npt.NDArray[np.float32]]]:
    return [
        (tensor, numpy_helper.to_array(tensor))
        for tensor in model.graph.initializer
        if tensor.data_type == TensorProto.FLOAT and tensor.dims
    ]


def _scalars(model: ModelProto) -> set[str]:
    constants = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    constants |= {
        node.output[0]: tuple(each.t.dims)
        for node in model.graph.node
        for each in node.attribute
        if node.op_type == "Constant" and each.name == "value"
    }
    return {name for name, shape in constants.items() if not shape}


def _shapes(model: ModelProto) -> dict[str, tuple[int, ...]]:
    inferred = shape_inference.infer_shapes(model, data_prop=True).graph
    return {
        value.name: tuple(axis.dim_value for axis in value.type.tensor_type.shape.dim)
        for value in (*inferred.input, *inferred.value_info, *inferred.output)
    }
