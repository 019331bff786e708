"""ONNX Runtime's attention: packed projections, heads and masks, as standard operators."""

from __future__ import annotations

import math

import numpy as np

from fairlap.models.onnx_import.contrib.nodes import Expansion

_MASKED = -10000.0


def attention(to: Expansion) -> bool:
    """Project one input to queries, keys and values by one packed weight. A mask has one number per token, or none."""
    hidden, weight, bias, mask, past, added = (to.input(place) for place in range(6))
    unsupported = ("do_rotary", "past_present_share_buffer", "qkv_hidden_sizes")
    if past or any(to.outputs[1:]) or any(to.attributes.get(name) for name in unsupported):
        return False
    packed = to.make("MatMul", [hidden, weight])
    if bias:
        packed = to.make("Add", [packed, bias])
    return _attend(to, to.several("Split", [packed], 3, axis=-1, num_outputs=3), mask, added)


def multi_head_attention(to: Expansion) -> bool:
    """Of queries, keys and values of three axes that are projected already."""
    query, key, value, bias, mask, added = (to.input(place) for place in range(6))
    if not key or not value or any(to.inputs[6:]) or any(to.outputs[1:]):
        return False
    parts = [query, key, value]
    if bias:
        parts = [
            to.make("Add", pair)
            for pair in zip(parts, to.several("Split", [bias], 3, axis=0, num_outputs=3), strict=True)
        ]
    return _attend(to, parts, mask, added)


def _attend(to: Expansion, parts: list[str], mask: str, added: str) -> bool:
    """End with the product of the values, its heads joined."""
    heads = to.attributes["num_heads"]
    split = to.integers(0, 0, heads, -1)
    query, key, value = (to.make("Reshape", [part, split]) for part in parts)
    query = to.make("Transpose", [query], perm=[0, 2, 1, 3])
    key = to.make("Transpose", [key], perm=[0, 2, 3, 1])
    value = to.make("Transpose", [value], perm=[0, 2, 1, 3])
    scores = to.make("MatMul", [query, key])
    scale = to.attributes.get("scale", 0.0)
    if scale:
        scores = to.make("Mul", [scores, to.number(scale, like=scores)])
    else:
        size = to.make("Slice", [to.make("Shape", [query]), to.integers(3), to.integers(4), to.integers(0)])
        root = to.make("Sqrt", [to.make("CastLike", [size, scores])])
        scores = to.make("Div", [scores, root])
    if added:
        scores = to.make("Add", [scores, added])
    if to.attributes.get("unidirectional"):
        scores = to.make("Add", [scores, _causal(to, scores)])
    if mask:
        scores = to.make("Add", [scores, _of_tokens(to, mask, scores)])
    shares = to.make("Softmax", [scores], axis=-1)
    joined = to.make("Transpose", [to.make("MatMul", [shares, value])], perm=[0, 2, 1, 3])
    to.make("Reshape", [joined, to.integers(0, 0, -1)], to.outputs[:1])
    return True


def _causal(to: Expansion, scores: str) -> str:
    shape = to.make("Shape", [scores])
    square = to.make("Slice", [shape, to.integers(2), to.integers(4), to.integers(0)])
    hidden = to.make("Expand", [to.constant(np.array(-math.inf, np.float32)), square])
    above = to.make("Trilu", [hidden, to.constant(np.array(1, np.int64))], upper=1)
    return to.make("CastLike", [above, scores])


def _of_tokens(to: Expansion, mask: str, scores: str) -> str:
    """Of a mask (batch, tokens): 1 keeps a token, 0 adds a large negative number to its scores."""
    wide = to.make("CastLike", [to.make("Reshape", [mask, to.integers(0, 1, 1, -1)]), scores])
    away = to.make("Sub", [to.number(1.0, like=scores), wide])
    return to.make("Mul", [away, to.number(to.attributes.get("mask_filter_value", _MASKED), like=scores)])
