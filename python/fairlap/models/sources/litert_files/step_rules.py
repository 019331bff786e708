"""Which operators LiteRT computes in steps, and whether their results may have other steps than what they are given."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap.models.sources.litert_files.onnx_graph import Untranslated
from fairlap.models.sources.litert_files.part import Operator, Part
from fairlap.models.sources.litert_files.steps import IN_STEPS

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
