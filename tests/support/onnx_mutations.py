"""Valid ONNX files, damaged in many ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import numpy as np
from onnx import AttributeProto, ModelProto, TensorProto, helper, numpy_helper, parser

_SIZES = (-1, 0, 1, 2, 3, 7, 255, 65536, 2**31 - 1, 2**31, 2**40, 2**62, -(2**63))


def valid_models() -> list[ModelProto]:
    """Small models that together use convolutions, attention, computed shapes, quantization and control flow."""
    return [_image_model(), _attention_model(), _shape_model(), _quantized_model(), _loop_model()]


def mutated(model: ModelProto, random: Random) -> bytes:
    """Change a file one to four times, in its fields or in its bytes."""
    changed = ModelProto()
    changed.CopyFrom(model)
    for _ in range(random.randint(0, 3)):
        random.choice(_FIELDS)(changed, random)
    content = bytearray(changed.SerializeToString())
    for _ in range(random.choice((0, 0, 1, 1, 2, 8))):
        random.choice(_BYTES)(content, random)
    return bytes(content)


def _flip(content: bytearray, random: Random) -> None:
    if content:
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)


def _replace(content: bytearray, random: Random) -> None:
    if content:
        content[random.randrange(len(content))] = random.choice((0, 1, 127, 128, 255))


def _truncate(content: bytearray, random: Random) -> None:
    del content[random.randrange(len(content) + 1) :]


def _repeat(content: bytearray, random: Random) -> None:
    start = random.randrange(len(content) + 1)
    part = content[start : start + random.randrange(64)]
    content[start:start] = part


def _remove(content: bytearray, random: Random) -> None:
    start = random.randrange(len(content) + 1)
    del content[start : start + random.randrange(16)]


_BYTES: Sequence[Callable[[bytearray, Random], None]] = (_flip, _replace, _truncate, _repeat, _remove)


def _change_dimension(model: ModelProto, random: Random) -> None:
    tensors = [*model.graph.initializer, *(each.t for node in model.graph.node for each in node.attribute if each.t)]
    tensor = random.choice(tensors)
    if tensor.dims:
        tensor.dims[random.randrange(len(tensor.dims))] = random.choice(_SIZES)
    else:
        tensor.dims.append(random.choice(_SIZES))


def _change_type(model: ModelProto, random: Random) -> None:
    random.choice(model.graph.initializer).data_type = random.randrange(-1, 30)


def _change_input(model: ModelProto, random: Random) -> None:
    tensor = random.choice(model.graph.input).type.tensor_type
    if random.random() < 0.3:
        tensor.elem_type = random.randrange(30)
    elif tensor.shape.dim:
        random.choice(tensor.shape.dim).dim_value = random.choice(_SIZES)


def _change_attribute(model: ModelProto, random: Random) -> None:
    nodes = [node for node in model.graph.node if node.attribute]
    attribute = random.choice(random.choice(nodes).attribute)
    if attribute.ints:
        attribute.ints[random.randrange(len(attribute.ints))] = random.choice(_SIZES)
    elif attribute.type == AttributeProto.INT:
        attribute.i = random.choice(_SIZES)
    elif attribute.type == AttributeProto.STRING:
        attribute.s = random.choice((b"", b"\xff\xfe", b"SAME_UPPER", b"none"))
    else:
        attribute.type = random.randrange(15)


def _change_operand(model: ModelProto, random: Random) -> None:
    """Integers that say shapes, axes or places."""
    tensors = [each for each in model.graph.initializer if each.data_type == TensorProto.INT64]
    if tensors:
        tensor = random.choice(tensors)
        numbers = numpy_helper.to_array(tensor).copy() if _readable(tensor) else np.zeros(1, np.int64)
        if numbers.size:
            numbers.reshape(-1)[random.randrange(numbers.size)] = random.choice(_SIZES)
        tensor.CopyFrom(numpy_helper.from_array(numbers, tensor.name))


def _readable(tensor: TensorProto) -> bool:
    inside = tensor.HasField("raw_data") and tensor.data_location != TensorProto.EXTERNAL
    return inside and len(tensor.raw_data) == 8 * int(np.prod(list(tensor.dims), dtype=object))


def _change_name(model: ModelProto, random: Random) -> None:
    node = random.choice(model.graph.node)
    names = [name for each in model.graph.node for name in (*each.input, *each.output)]
    side = random.choice((node.input, node.output))
    if side:
        side[random.randrange(len(side))] = random.choice((*names, "", "nothing"))


def _change_operator(model: ModelProto, random: Random) -> None:
    node = random.choice(model.graph.node)
    node.op_type = random.choice([each.op_type for each in model.graph.node] + ["If", "Tile", "Expand", "Range", ""])


def _remove_node(model: ModelProto, random: Random) -> None:
    if len(model.graph.node) > 1:
        del model.graph.node[random.randrange(len(model.graph.node))]


def _move_data_outside(model: ModelProto, random: Random) -> None:
    tensor = random.choice(model.graph.initializer)
    tensor.data_location = TensorProto.EXTERNAL
    for key, values in (("location", ("../x", "/etc/passwd", "", "x\0y", ".")), ("offset", ("-1", "x", "1"))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, random.choice(values)


_FIELDS: Sequence[Callable[[ModelProto, Random], None]] = (
    _change_dimension,
    _change_type,
    _change_input,
    _change_attribute,
    _change_operand,
    _change_name,
    _change_operator,
    _remove_node,
    _move_data_outside,
)


def _model(nodes: list[object], inputs: dict[str, tuple[int, list[int]]], weights: dict[str, object]) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "seed",
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def _floats(*shape: int) -> object:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def _image_model() -> ModelProto:
    nodes = [
        helper.make_node("Conv", ["x", "k", "b"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("BatchNormalization", ["c", "s", "s", "s", "v"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["m"], kernel_shape=[2, 2], ceil_mode=1, auto_pad="SAME_UPPER"),
        helper.make_node("Resize", ["m", "", "scales"], ["z"], mode="linear"),
        helper.make_node("Pad", ["z", "pads"], ["p"]),
        helper.make_node("GlobalAveragePool", ["p"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"], axis=1),
        helper.make_node("Gemm", ["f", "w", "b"], ["y"], transB=1),
    ]
    scales, pads = np.array([1, 1, 2, 2], np.float32), np.array([0, 0, 1, 1, 0, 0, 1, 1])
    weights = {
        "k": _floats(4, 3, 3, 3),
        "b": _floats(4),
        "s": _floats(4),
        "v": np.ones(4, np.float32),
        "w": _floats(4, 4),
        "scales": scales,
        "pads": pads,
    }
    return _model(nodes, {"x": (TensorProto.FLOAT, [1, 3, 8, 8])}, weights)


def _attention_model() -> ModelProto:
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["e"]),
        helper.make_node("LayerNormalization", ["e", "s", "s"], ["n"], axis=-1),
        helper.make_node("Split", ["n", "parts"], ["q", "k", "v"], axis=2),
        helper.make_node("Transpose", ["k"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "t"], ["a"]),
        helper.make_node("Softmax", ["a"], ["h"], axis=-1),
        helper.make_node("MatMul", ["h", "v"], ["m"]),
        helper.make_node("Gelu", ["m"], ["u"]),
        helper.make_node("Einsum", ["u", "w"], ["y"], equation="btc,cd->btd"),
    ]
    weights = {"table": _floats(10, 12), "s": _floats(12), "parts": np.array([4, 4, 4]), "w": _floats(4, 4)}
    return _model(nodes, {"ids": (TensorProto.INT64, [2, 5])}, weights)


def _shape_model() -> ModelProto:
    one = numpy_helper.from_array(np.ones(1, np.float32))
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "first"], ["batch"]),
        helper.make_node("Concat", ["batch", "rest"], ["wanted"], axis=0),
        helper.make_node("Reshape", ["x", "wanted"], ["r"]),
        helper.make_node("ConstantOfShape", ["first2"], ["ones"], value=one),
        helper.make_node("Expand", ["r", "wide"], ["e"]),
        helper.make_node("Range", ["start", "limit", "delta"], ["line"]),
        helper.make_node("Cast", ["line"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Slice", ["e", "starts", "ends", "axes"], ["part"]),
        helper.make_node("Tile", ["part", "repeats"], ["tiled"]),
        helper.make_node("ReduceSum", ["tiled", "axes"], ["sum"], keepdims=0),
        helper.make_node("TopK", ["sum", "first2"], ["top", "places"], axis=1),
        helper.make_node("Add", ["top", "floats"], ["added"]),
        helper.make_node("Add", ["added", "ones"], ["wide_sum"]),
        helper.make_node("Unsqueeze", ["wide_sum", "axes"], ["y"]),
    ]
    weights: dict[str, object] = {
        "first": [0],
        "rest": [3, -1],
        "wide": [2, 3, 4],
        "starts": [0],
        "ends": [2],
        "axes": [2],
        "repeats": [1, 1, 2],
        "first2": [3],
    }
    scalars: dict[str, object] = {"start": 0, "limit": 3, "delta": 1}
    return _model(nodes, {"x": (TensorProto.FLOAT, [2, 3])}, weights | scalars)


def _quantized_model() -> ModelProto:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "scales", "zeros"], ["k"], axis=0),
        helper.make_node("MatMul", ["d", "k"], ["m"]),
        helper.make_node("ScatterND", ["m", "places", "updates"], ["s"]),
        helper.make_node("GatherND", ["s", "places"], ["g"]),
        helper.make_node("DepthToSpace", ["image"], ["space"], blocksize=2),
        helper.make_node("ReduceMax", ["space"], ["top"], keepdims=0),
        helper.make_node("Clip", ["g", "low", "top"], ["y"]),
    ]
    weights = {
        "scale": np.float32(0.1),
        "zero": np.uint8(3),
        "w": np.arange(12, dtype=np.int8).reshape(3, 4),
        "scales": np.ones(3, np.float32),
        "zeros": np.zeros(3, np.int8),
        "places": np.array([[0], [1]]),
        "updates": _floats(2, 4),
        "image": _floats(1, 4, 2, 2),
        "low": np.float32(0),
    }
    return _model(nodes, {"x": (TensorProto.FLOAT, [2, 3])}, weights)


def _loop_model() -> ModelProto:
    """Build a branch that data choose, a hundred trips, and a scan."""
    model = parser.parse_model(_LOOPS)
    model.graph.initializer.append(numpy_helper.from_array(np.eye(3, dtype=np.float32), "w"))
    return model


_LOOPS = """<ir_version: 8, opset_import: ["" : 17]> loops (float[2,3] x) => (float[2,3] y)
<int64 trips = {100}, float zero = {0}> {
  most = ReduceMax <keepdims = 0> (x)
  positive = Greater (most, zero)
  chosen = If (positive) <
    then_branch = a () => (float[2,3] then) { then = MatMul (x, w) },
    else_branch = b () => (float[2,3] else) { else = Neg (x) }>
  repeated = Loop (trips, "", chosen) <body = c (int64 i, bool c, float[2,3] s) => (bool d, float[2,3] t) {
    d = Identity (c)  t = MatMul (s, w) }>
  row = ReduceMax <keepdims = 0, axes = [0]> (repeated)
  last, y = Scan (row, repeated) <num_scan_inputs = 1, body = e (float[3] s, float[3] r) => (float[3] t, float[3] u) {
    t = Add (s, r)  u = Mul (s, t) }>
}"""
