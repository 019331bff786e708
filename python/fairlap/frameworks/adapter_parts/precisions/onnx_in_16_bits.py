"""ONNX graphs in float16 or bfloat16: weights, inputs, and every operator that ONNX defines in that type.

ONNX's own definitions say which those are, in the graph's version of the operators. The others compute in float32,
between casts; a graph whose products would be among them is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairlap.frameworks.adapter_parts.answers import Answers, as_float32
from fairlap.frameworks.adapter_parts.onnx_graph import weights_in
from fairlap.frameworks.contract import Unsupported
from fairlap.models.arrays import Arrays
from fairlap.models.onnx_import.subgraphs import graphs_in, graphs_under
from fairlap.request.work import Precision

NAMES: Mapping[Precision, str] = {"fp16": "float16", "bf16": "bfloat16"}
"""As ONNX names the types: tensor(float16), and numbers FLOAT16 in ``TensorProto``."""

PRODUCTS = frozenset(
    ("Conv", "ConvTranspose", "DeformConv", "Einsum", "Gemm", "MatMul", "Attention", "LSTM", "GRU", "RNN")
)
_OPSET_WITH_ALL = 22  # the first in which every product takes bfloat16
_FLOAT = 1
_WIDE = "tensor(float)"


@dataclass(frozen=True)
class GraphIn16Bits:
    graph: bytes
    in_float32: Mapping[str, int]  # operators that ONNX does not define in the type, and how many nodes have them

    def in_force(self) -> dict[str, str]:
        if not self.in_float32:
            return {}
        listed = ", ".join(f"{count} {kind}" for kind, count in sorted(self.in_float32.items()))
        return {"nodes_in_float32": f"{listed}: ONNX does not define them in this type"}

    def weights(self, given: Arrays) -> Answers:
        """Read the weights from the graph, widened to float32."""
        return {name: as_float32(array) for name, array in weights_in(self.graph, given).items()}


def in_16_bits(graph: bytes | str, precision: Precision) -> GraphIn16Bits:
    """Convert the bytes of a graph, or a file with all its data. Raises Unsupported where products stay in float32."""
    import onnx
    from google.protobuf.message import EncodeError

    name = NAMES[precision]
    model = onnx.load_from_string(graph) if isinstance(graph, bytes) else onnx.load_model(graph)
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    if lacking := _products_without(model, name):
        model = _newer(model, f"its {lacking} takes no {name} in opset {_opset(model)} of ONNX")
    conversion = _Conversion(name, _opset(model), _types_of(model))
    conversion.convert(model.graph)
    try:
        return GraphIn16Bits(model.SerializeToString(), dict(conversion.in_float32))
    except (EncodeError, ValueError):
        raise Unsupported(f"the graph has more than 2 GiB in {name}, which is as much as one message holds") from None


def _opset(model: Any) -> int:
    return int(next(each.version for each in model.opset_import if each.domain in ("", "ai.onnx")))


def _newer(model: Any, why: str) -> Any:
    """In the version of ONNX that has all products in both types. Raises Unsupported if it cannot be converted."""
    from onnx import version_converter

    if _opset(model) >= _OPSET_WITH_ALL:
        raise Unsupported(why)
    try:
        return version_converter.convert_version(model, _OPSET_WITH_ALL)
    except Exception as error:  # it raises several, each with the operator that it cannot convert
        first = str(error).strip().splitlines()[:1]
        raise Unsupported(f"{why}, and it cannot be converted to opset {_OPSET_WITH_ALL}: {''.join(first)}") from None


def _products_without(model: Any, name: str) -> str:
    """Name the kind of a product that does not take the type; empty where all do."""
    opset = _opset(model)
    for graph in graphs_under(model.graph):
        for node in graph.node:
            formal = _formal(node, opset) if node.op_type in PRODUCTS else None
            if formal is not None and f"tensor({name})" not in formal.allowed(formal.inputs[0]):
                return str(node.op_type)
    return ""


def _types_of(model: Any) -> dict[str, int]:
    """Find the type of every value by its name. Weights are left out, which it does not depend on."""
    import onnx

    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    named = {value.name for value in bare.graph.input}
    weights = [each for each in model.graph.initializer if each.data_type == _FLOAT]
    del bare.graph.initializer[:]
    bare.graph.initializer.extend(each for each in model.graph.initializer if each.data_type != _FLOAT)
    for each in weights:
        if each.name not in named:
            bare.graph.input.append(onnx.helper.make_tensor_value_info(each.name, _FLOAT, list(each.dims)))
    found: dict[str, int] = {}
    for graph in graphs_under(onnx.shape_inference.infer_shapes(bare).graph):
        found |= {tensor.name: tensor.data_type for tensor in graph.initializer}
        for value in (*graph.input, *graph.output, *graph.value_info):
            found[value.name] = value.type.tensor_type.elem_type
    return found


@dataclass(frozen=True)
class _Formal:
    """An operator's parameters as ONNX defines them: the name of each one's type, and what that may be."""

    inputs: Sequence[str]
    outputs: Sequence[str]
    constraints: Mapping[str, Sequence[str]]

    def allowed(self, type_name: str) -> Sequence[str]:
        return self.constraints.get(type_name, [type_name])


def _formal(node: Any, opset: int) -> _Formal | None:
    """None for operators of others, and for those that contain graphs, which have the types of their graphs."""
    from onnx import defs

    if node.domain not in ("", "ai.onnx") or graphs_in(node):
        return None
    try:
        schema = defs.get_schema(node.op_type, opset, "")
    except defs.SchemaError:
        return None
    constraints = {each.type_param_str: list(each.allowed_type_strs) for each in schema.type_constraints}
    inputs = _of_each(schema.inputs, len(node.input))
    return _Formal(inputs, _of_each(schema.outputs, len(node.output)), constraints)


def _of_each(parameters: Sequence[Any], count: int) -> list[str]:
    """List the types of so many, where the last parameter may stand for any number."""
    return [str(parameters[min(place, len(parameters) - 1)].type_str) for place in range(count)]


class _Conversion:
    def __init__(self, name: str, opset: int, types: Mapping[str, int]) -> None:
        from onnx import TensorProto, helper

        self._type = getattr(TensorProto, name.upper())
        self._type_text = f"tensor({name})"
        self._dtype = helper.tensor_dtype_to_np_dtype(self._type)
        self._opset, self._types = opset, types
        self._wide_weights: dict[str, Any] = {}  # as they were, for those that read them in float32
        self._casts = 0
        self.in_float32: Counter[str] = Counter()

    def convert(self, graph: Any) -> None:
        for value in (*graph.input, *graph.output):
            if value.type.tensor_type.elem_type == _FLOAT:
                value.type.tensor_type.elem_type = self._type
        del graph.value_info[:]  # which is found again
        for tensor in graph.initializer:
            if tensor.data_type == _FLOAT:
                self._keep_wide(tensor.name, tensor)
                tensor.CopyFrom(self._narrow(tensor))
        widened: dict[str, Any] = {}  # by name, the copy of a weight; None where it is the result of a cast
        nodes = [made for node in list(graph.node) for made in self._converted(node, widened)]
        del graph.node[:]
        graph.node.extend(nodes)
        graph.initializer.extend(copy for copy in widened.values() if copy is not None)

    def _converted(self, node: Any, widened: dict[str, Any]) -> Iterator[Any]:
        """Yield the node, with casts around what it has in float32."""
        for inner in graphs_in(node):
            self.convert(inner)
        formal = _formal(node, self._opset)
        if formal is None:
            self._convert_attributes(node)
            yield node
            return
        inputs = list(zip(list(node.input), formal.inputs, strict=True))
        outputs = list(zip(list(node.output), formal.outputs, strict=True))
        wide = {type_name for name, type_name in (*inputs, *outputs) if self._is_wide(name, formal.allowed(type_name))}
        if wide.intersection((*formal.inputs[:1], *formal.outputs[:1])):
            self.in_float32[node.op_type] += 1
        else:
            self._convert_attributes(node)
        for place, (name, type_name) in enumerate(inputs):
            if type_name in wide and self._is_float(name):
                node.input[place] = f"{name}/float32"
                yield from self._widened(name, node.input[place], widened)
        after = []
        for place, (name, type_name) in enumerate(outputs):
            if type_name in wide and self._is_float(name):
                node.output[place] = f"{name}/wide"
                after.append(self._cast(node.output[place], name, self._type))
        yield node
        yield from after

    def _is_float(self, name: str) -> bool:
        return bool(name) and self._types.get(name) == _FLOAT

    def _is_wide(self, name: str, allowed: Sequence[str]) -> bool:
        return self._is_float(name) and self._type_text not in allowed and _WIDE in allowed

    def _widened(self, name: str, as_name: str, widened: dict[str, Any]) -> Iterator[Any]:
        """Yield a cast, but of a weight keep a copy: rounding it first would change the scales of a Resize."""
        if as_name in widened:
            return
        widened[as_name] = None
        if name in self._wide_weights:
            widened[as_name] = self._wide_weights[name]
            widened[as_name].name = as_name
        else:
            yield self._cast(name, as_name, _FLOAT)

    def _keep_wide(self, name: str, tensor: Any) -> None:
        self._wide_weights[name] = type(tensor)()
        self._wide_weights[name].CopyFrom(tensor)

    def _cast(self, source: str, result: str, to: int) -> Any:
        from onnx import helper

        self._casts += 1
        return helper.make_node("Cast", [source], [result], name=f"cast/{self._casts}", to=to)

    def _convert_attributes(self, node: Any) -> None:
        from onnx import helper, numpy_helper

        for attribute in node.attribute:
            if attribute.HasField("t") and attribute.t.data_type == _FLOAT:
                if node.op_type == "Constant":
                    self._keep_wide(node.output[0], attribute.t)
                attribute.t.CopyFrom(self._narrow(attribute.t))
            elif attribute.name in ("to", "dtype") and attribute.i == _FLOAT:
                attribute.i = self._type
            elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
                values = attribute.f if attribute.name == "value_float" else list(attribute.floats)
                tensor = numpy_helper.from_array(np.asarray(values, np.float32).astype(self._dtype))
                attribute.CopyFrom(helper.make_attribute("value", tensor))
        if node.op_type == "ConstantOfShape" and not node.attribute:
            zero = numpy_helper.from_array(np.zeros(1, self._dtype))
            node.attribute.append(helper.make_attribute("value", zero))

    def _narrow(self, tensor: Any) -> Any:
        from onnx import numpy_helper

        with np.errstate(over="ignore"):
            return numpy_helper.from_array(numpy_helper.to_array(tensor).astype(self._dtype), tensor.name)
