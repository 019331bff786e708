"""Find the type of every value, and compute what does not depend on inputs or weights: shapes, indices, masks.

One pass in the graph's order: since every size of the inputs is known, so is every size after it, or the model has
results whose size depends on data.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np

from fairlap.errors import FairlapError, described
from fairlap.models.onnx_import.control_flow.bodies import Scope
from fairlap.models.onnx_import.control_flow.follow import FOLLOWED, follow
from fairlap.models.onnx_import.errors import ModelFileInvalid, OperatorsUnsupported, SizesDoNotFit
from fairlap.models.onnx_import.evaluation import evaluate
from fairlap.models.onnx_import.graph import MOST_ELEMENTS, Array, Folded, Node, Tensor
from fairlap.models.onnx_import.libraries.numpy_library import NumPyLibrary
from fairlap.models.onnx_import.operators.layers.recurrent import DYNAMIC_STEPS
from fairlap.models.onnx_import.operators.table import OPERATORS

MOST_FOLDED = 2**22  # elements of a result that is computed while loading
MOST_KNOWN = 2**16  # elements of an array of the file that takes part in computing shapes
_SHAPE_OF_INPUT = ("GroupNormalization", "MeanVarianceNormalization")  # operators for which onnx infers no shape


class Folding:
    """``result`` grows, and is set back where loops are tried in several ways."""

    def __init__(self, opsets: Mapping[str, int], ir_version: int, scope: Scope) -> None:
        from onnx import helper

        self.opsets = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
        self.opset, self.ir_version = opsets[""], ir_version
        self.library = NumPyLibrary(wide=False)
        self.scope, self.depth = scope, 0
        self.result = Folded()

    def enter(self, tensor: Tensor, array: Array | None = None) -> None:
        self.result.values[tensor.name] = tensor
        if array is not None:
            self.result.known[tensor.name] = array

    def require(self, name: str) -> bool:
        """Find a value, or read it where it is an array of the file. Report whether there is one."""
        if name not in self.result.values:
            array = self.scope.array(name)
            if array is None:
                return False
            self.enter(Tensor(name, str(array.dtype), array.shape), array if array.size <= MOST_KNOWN else None)
        return True

    def inside(self) -> Self:
        """Make one for a graph inside of a node, which sees what is known here."""
        inner = copy.copy(self)
        inner.result = self.result.copied()
        inner.result.nodes = []
        inner.depth += 1
        return inner

    def fold(self, nodes: Iterable[tuple[Any, Node]]) -> Folded:
        for proto, node in nodes:
            self._require_inputs(node)
            if node.operator in FOLLOWED:
                follow(self, proto, node)
                continue
            for tensor in self._types(proto, node):
                self.result.values[tensor.name] = tensor
            if node.operator == "CastLike":  # the other value matters only for its type, which is known
                to = self.result.values[node.outputs[0]].dtype
                node = replace(node, operator="Cast", inputs=node.inputs[:1], attributes={"to": to})
            if not self._computed(node):
                self.result.nodes.append(node)
        return self.result

    def _require_inputs(self, node: Node) -> None:
        missing = [name for name in node.inputs if name and not self.require(name)]
        if missing:
            raise ModelFileInvalid(
                f"{node.operator} {node.name!r} uses {missing[0]!r}, which nothing computes before it"
            )

    def _types(self, proto: Any, node: Node) -> list[Tensor]:
        from onnx import helper, numpy_helper, shape_inference

        types, data = {}, {}
        for name in filter(None, node.inputs):
            tensor = self.result.values[name]
            if node.operator == "Range" and tensor.size == 1:
                tensor = replace(tensor, shape=())
            types[name] = helper.make_tensor_type_proto(
                helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype)), tensor.shape
            )
            if name in self.result.known and self.result.known[name].size <= 1024:
                data[name] = numpy_helper.from_array(self.result.known[name].reshape(tensor.shape))
        for attribute in [each for each in proto.attribute if each.name == DYNAMIC_STEPS]:
            proto.attribute.remove(attribute)
        try:
            schema = self._schema(proto)
            inferred = shape_inference.infer_node_outputs(
                schema, proto, types, data, opset_imports=self.opsets, ir_version=self.ir_version
            )
        except Exception as error:
            sizes = (self.result.values[name] for name in node.inputs if name)
            takes = " and ".join(f"{each.name!r} of {list(each.shape)}" for each in sizes)
            named = f" {node.name!r}" if node.name else ""
            raise SizesDoNotFit(f"{node.operator}{named} cannot take {takes}: {described(error)}") from error
        return [self._tensor(node, name, inferred.get(name)) for name in filter(None, node.outputs)]

    def _schema(self, proto: Any) -> Any:
        """Of a form that is newer than the file's opset, the newest: ONNX Runtime had some of them before ONNX."""
        from onnx import defs

        newest = defs.get_schema(proto.op_type)
        try:
            found = defs.get_schema(proto.op_type, self.opset, "")
        except defs.SchemaError:
            return newest
        newer = len(proto.input) > found.max_input or any(each.name not in found.attributes for each in proto.attribute)
        return newest if newer else found

    def _tensor(self, node: Node, name: str, kind: Any) -> Tensor:
        from onnx import helper

        if node.operator == "Dropout":  # whose mask has no type before opset 12
            value = self.result.values[node.inputs[0]]
            return replace(value, name=name, dtype=value.dtype if name == node.outputs[0] else "bool")
        if kind is not None and kind.HasField("tensor_type") and kind.tensor_type.elem_type:
            dtype = str(np.dtype(helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type)))
            if node.operator in _SHAPE_OF_INPUT:
                return Tensor(name, dtype, self.result.values[node.inputs[0]].shape)
            if kind.tensor_type.HasField("shape"):
                dims = kind.tensor_type.shape.dim
                if all(dim.HasField("dim_value") and dim.dim_value >= 0 for dim in dims):
                    tensor = Tensor(name, dtype, tuple(dim.dim_value for dim in dims))
                    if tensor.size > MOST_ELEMENTS:
                        raise ModelFileInvalid(
                            f"{node.operator} {node.name!r} computes {tensor.size:,} elements, "
                            f"over the limit of {MOST_ELEMENTS:,}"
                        )
                    return tensor
            if node.operator == "Range" and all(each in self.result.known for each in node.inputs):
                return Tensor(name, dtype, (_count(*(self.result.known[each] for each in node.inputs)),))
        raise OperatorsUnsupported(f"the size of {name!r}, which {node.operator} computes, depends on data")

    def _computed(self, node: Node) -> bool:
        """Whether a node is not needed because its results are known.

        A floating-point result is only used to compute others here: the reference needs it in float64.
        """
        result = self.result
        by_shape = node.operator in ("Shape", "Size")
        if not by_shape:
            if not OPERATORS[node.operator].folds or any(name and name not in result.known for name in node.inputs):
                return False
            if sum(result.values[name].size for name in filter(None, (*node.inputs, *node.outputs))) > MOST_FOLDED:
                return False
        arrays = self._shape(node) if by_shape else self._evaluated(node)
        exact = True
        for name, array in zip(node.outputs, arrays, strict=False):
            if name:
                tensor = result.values[name]
                result.known[name] = np.asarray(array).astype(tensor.dtype, copy=False).reshape(tensor.shape)
                exact &= result.known[name].dtype.kind in "iub"
        if not exact:
            result.computed.update(filter(None, node.outputs))
        return exact

    def _shape(self, node: Node) -> list[Array]:
        tensor = self.result.values[node.inputs[0]]
        if node.operator == "Size":
            return [np.array(tensor.size, np.int64)]
        return [np.array(tensor.shape[node.attributes.get("start", 0) : node.attributes.get("end")], np.int64)]

    def _evaluated(self, node: Node) -> list[Array]:
        try:
            return evaluate(self.library, node, self.result.known, self.result.values, self.opset)
        except FairlapError:
            raise
        except (ValueError, TypeError, IndexError, KeyError, ArithmeticError, MemoryError, AttributeError) as error:
            raise ModelFileInvalid(f"cannot compute {node.operator} {node.name!r}: {described(error)}") from error


def _count(start: Array, limit: Array, delta: Array) -> int:
    """How many numbers a Range has."""
    first, last, step = (float(each.astype(np.float64).reshape(())) for each in (start, limit, delta))
    if not step or not np.isfinite([first, last, step]).all():
        raise ModelFileInvalid(f"a Range cannot count from {first} to {last} in steps of {step}")
    return max(0, math.ceil((last - first) / step))
