"""The graph of a LiteRT file in ONNX, for the float64 reference and for frameworks that read no such file.

What a file computes is what LiteRT makes of it, so a translation counts only where its answers are LiteRT's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairlap.models.sources.litert_files.kernels import interpreter_of
from fairlap.models.sources.litert_files.list_updates import with_list_updates
from fairlap.models.sources.litert_files.onnx_graph import OnnxGraph, Untranslated
from fairlap.models.sources.litert_files.operation import Operation
from fairlap.models.sources.litert_files.operators import READS, TRANSLATIONS
from fairlap.models.sources.litert_files.part import Operator, Part
from fairlap.models.sources.litert_files.steps import IN_STEPS
from fairlap.models.sources.litert_files.tflite_graph import TfliteGraph

# Which operators LiteRT computes in steps, and whether their results may have other steps than what they are given.
_MOVE = {"EXPAND_DIMS", "GATHER", "PACK", "RESHAPE", "SLICE", "SPLIT", "SPLIT_V", "SQUEEZE", "STRIDED_SLICE",
         "TRANSPOSE", "UNPACK"}  # fmt: skip
_OF_THEIR_STEPS = {
    "AVERAGE_POOL_2D", "DEPTH_TO_SPACE", "MAXIMUM", "MAX_POOL_2D", "MINIMUM", "MIRROR_PAD", "PAD", "PADV2",
    "REDUCE_MAX", "REDUCE_MIN", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "SELECT_V2", "SPACE_TO_DEPTH",
}  # fmt: skip
_TO_OTHER_STEPS = {
    "ABS", "ADD", "BATCH_MATMUL", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "ELU", "EXP",
    "FULLY_CONNECTED", "HARD_SWISH", "LEAKY_RELU", "LOG", "LOGISTIC", "MEAN", "MUL", "PRELU", "QUANTIZE", "REDUCE_PROD",
    "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "RSQRT", "SOFTMAX", "SQUARED_DIFFERENCE", "SUB", "SUM", "TANH",
    "TRANSPOSE_CONV", "UNIDIRECTIONAL_SEQUENCE_LSTM",
}  # fmt: skip
_TO_TRUTH = {"EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"}
_OF_WEIGHTS_ALONE = {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"}  # whose other values may be real numbers
_HAVE_PARTS_IN_STEPS = {"IF", "WHILE"}
_BYTES = ("int8", "uint8")


def kinds_in_steps() -> set[str]:
    """Of all operators that are translated where LiteRT computes them in steps."""
    return _MOVE | _OF_THEIR_STEPS | _TO_OTHER_STEPS | _TO_TRUTH | {"DEQUANTIZE"}


def keeps_steps(operator: Operator, part: Part, read: Sequence[int]) -> bool:
    """Whether it moves whole numbers as they are; raise Untranslated where LiteRT has no such operator.

    ``read`` are the places of the tensors that it computes with.
    """
    given = [steps for place in read if (steps := part.steps_of(place)) and steps.dtype in IN_STEPS]
    made = [steps for place in operator.results if (steps := part.steps_of(place))]
    kind = operator.kind
    if (not given and not made) or kind in _HAVE_PARTS_IN_STEPS:
        return False
    same = len(made) == len(operator.results) and all(each.same_as(made[0]) for each in (*given, *made))
    if kind in _MOVE or (kind == "CONCATENATION" and same and not operator.options.fusedActivationFunction):
        if not same:
            raise Untranslated(f"{kind} to other steps")
        return all(each.is_one and each.dtype in _BYTES for each in made)
    if not made:
        _require_real_result(operator, part, read)
    elif len(made) < len(operator.results) or (kind != "QUANTIZE" and any(_is_real(part, place) for place in read)):
        raise Untranslated(f"{kind} of real numbers and steps together")
    elif kind in _OF_THEIR_STEPS and not same:
        raise Untranslated(f"{kind} to other steps")
    elif kind not in _OF_THEIR_STEPS | _TO_OTHER_STEPS:
        raise Untranslated(f"{kind} in steps")
    return False


def _require_real_result(operator: Operator, part: Part, read: Sequence[int]) -> None:
    kind = operator.kind
    if kind in {"DEQUANTIZE", *_TO_TRUTH}:
        return
    others = [place for number, place in enumerate(operator.inputs) if number != 1 and place in read]
    if kind not in _OF_WEIGHTS_ALONE or not all(_is_real(part, place) for place in others):
        raise Untranslated(f"{kind} with weights in steps and real numbers")


def _is_real(part: Part, place: int) -> bool:
    return part.type_of(place) == "float32"


_OPSET, _OPSET_OF_INT16, _IR_VERSION = 20, 21, 10  # in 21, ONNX Runtime 1.32 moves steps to results of another type
_MOST_NAMED = 3

Kind = tuple[str, tuple[int, ...]]  # a type and a shape


def onnx_model(graph: TfliteGraph) -> Any:
    """Translate a graph whose sizes are bound and whose weights are dense; raise Untranslated with the reason."""
    translator, main = Translator(graph), graph.main
    if set(graph.inputs) & set(graph.outputs):
        raise Untranslated("an input and an output have one name")
    names = {main.place_of(tensor): name for name, tensor in graph.inputs.items()}
    places = {name: main.place_of(tensor) for name, tensor in graph.outputs.items()}
    onnx = OnnxGraph({*graph.inputs, *graph.outputs})
    translator.translate(main, list(places.values()), names, onnx)
    for name, place in places.items():
        onnx.node("Identity", [names[place]], [name])
    inputs = {name: (graph.dtype(tensor), translator.shape(main, tensor)) for name, tensor in graph.inputs.items()}
    outputs = {name: (graph.dtype(tensor), translator.shape(main, tensor)) for name, tensor in graph.outputs.items()}
    return model_of(onnx, inputs, outputs)


def model_of(onnx: OnnxGraph, inputs: Mapping[str, Kind], outputs: Mapping[str, Kind]) -> Any:
    from onnx import helper, numpy_helper

    made = helper.make_graph(
        onnx.nodes,
        "from LiteRT",
        described(inputs),
        described(outputs),
        [numpy_helper.from_array(array, name) for name, array in onnx.initializers.items()],
    )
    opset = _OPSET_OF_INT16 if onnx.holds("int16") else _OPSET
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=_IR_VERSION)


class Translator:
    def __init__(self, graph: TfliteGraph) -> None:
        self._graph = graph
        parts = [graph.part(number) for number in range(graph.parts)]
        kinds = {kind for part in parts for kind in (each.kind for each in needed(part, part.outputs))}
        if missing := sorted(kinds - set(TRANSLATIONS)):
            named = ", ".join(missing[:_MOST_NAMED]) + " and others" * (len(missing) > _MOST_NAMED)
            raise Untranslated(f"there is no translation to ONNX of {named}")
        self._shapes = _shapes(graph)

    def shape(self, part: Part, tensor: Any) -> tuple[int, ...]:
        return self._shapes[part.number][part.place_of(tensor)]

    def kind(self, part: Part, place: int) -> Kind:
        return part.type_of(place), self._shapes[part.number][place]

    def part(self, number: int) -> Part:
        return self._graph.part(number)

    def described(self, part: Part, places: Sequence[int], names: Sequence[str]) -> list[Any]:
        return described({name: self.kind(part, place) for name, place in zip(names, places, strict=True)})

    def translate(self, part: Part, outputs: Sequence[int], names: dict[int, str], onnx: OnnxGraph) -> None:
        """Add what the outputs depend on to the names, which has those of the inputs."""
        for operator in needed(part, outputs):
            found = self.translated(part, operator, names, onnx)
            names.update(zip(operator.results, found, strict=True))
        for place in outputs:
            if place not in names and (held := part.constant(place)) is not None:
                names[place] = onnx.hold(held, part.name_of(place))
            elif place not in names:
                raise Untranslated(f"nothing computes the output {part.name_of(place)}")

    def translated(self, part: Part, operator: Operator, names: Mapping[int, str], onnx: OnnxGraph) -> list[str]:
        """Write one operator, and name its results."""
        read = read_by(operator)
        op = Operation(operator, part, self._shapes[part.number], names, onnx, self, keeps_steps(operator, part, read))
        try:
            found = TRANSLATIONS[operator.kind](op)
        except (AttributeError, IndexError, TypeError, ValueError) as error:  # of what LiteRT does not verify
            raise Untranslated(f"{operator.kind}: {error}") from None
        values = [found] if isinstance(found, str) else found
        return [op.rounded(value, place) for value, place in zip(values, operator.results, strict=True)]

    def placed(self, number: int, given: Sequence[str], onnx: OnnxGraph) -> list[str]:
        """Write a graph of the file into an ONNX graph, with these names for its inputs, and name its outputs."""
        part = self.part(number)
        names = dict(zip(part.inputs, given, strict=True))
        self.translate(part, part.outputs, names, onnx)
        return [names[place] for place in part.outputs]


def described(values: Mapping[str, Kind]) -> list[Any]:
    from onnx import helper

    return [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
        for name, (dtype, shape) in values.items()
    ]


def read_by(operator: Operator) -> list[int]:
    """Name the places of the tensors whose values it computes with: others are sizes, which are known."""
    places = READS.get(operator.kind, range(len(operator.inputs)))
    return [operator.inputs[at] for at in places if at < len(operator.inputs) and operator.inputs[at] >= 0]


def needed(part: Part, outputs: Sequence[int]) -> list[Operator]:
    """List the operators that the outputs depend on, in the order in which they run."""
    wanted, found = set(outputs), []
    for operator in reversed(with_list_updates(part, part.operators())):
        if wanted.intersection(operator.results):
            wanted.update(read_by(operator))
            found.append(operator)
    return found[::-1]


def _shapes(graph: TfliteGraph) -> list[list[tuple[int, ...]]]:
    """Of all tensors of all parts, as LiteRT finds them when it runs."""
    from ai_edge_litert.interpreter import OpResolverType

    interpreter = interpreter_of(graph.packed(), OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, keeps_all=True)
    interpreter.allocate_tensors()
    for each in interpreter.get_input_details():
        interpreter.set_tensor(each["index"], np.zeros(each["shape"], each["dtype"]))
    interpreter.invoke()  # some shapes are computed
    found = []
    for number in range(graph.parts):
        details = interpreter.get_tensor_details(number)
        shapes: list[tuple[int, ...]] = [()] * (1 + max((each["index"] for each in details), default=0))
        for each in details:
            shapes[each["index"]] = tuple(int(size) for size in each["shape"])
        found.append(shapes)
    return found
