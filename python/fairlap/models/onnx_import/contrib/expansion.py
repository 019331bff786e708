"""Operators of ONNX Runtime's own domain, written as the standard operators that they stand for.

Exporters and quantizers write them into files: com.microsoft's, and normalisations that ONNX Runtime had in the
standard domain before the standard did. A form that is not here stays as it is, so that it is named among what the
importer lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fairlap.models.onnx_import.contrib.attention import attention, multi_head_attention
from fairlap.models.onnx_import.contrib.nodes import Expansion
from fairlap.models.onnx_import.contrib.quantized import QUANTIZED

DOMAIN = "com.microsoft"


def expand_contrib(graph: Any) -> None:
    """Replace the nodes of a graph, in place."""
    if not any(_expands(node) for node in graph.node):
        return
    nodes: list[Any] = []
    for number, node in enumerate(graph.node):
        expansion = Expansion(node, f"{node.name or node.op_type}/{number}")
        if _expands(node) and EXPANSIONS[node.op_type](expansion):
            nodes += expansion.nodes
        else:
            copy = type(node)()
            copy.CopyFrom(node)
            nodes.append(copy)
    del graph.node[:]
    graph.node.extend(nodes)


def _expands(node: Any) -> bool:
    return node.op_type in (EXPANSIONS if node.domain == DOMAIN else _EARLY if node.domain in ("", "ai.onnx") else ())


def _gelu(to: Expansion) -> bool:
    to.make("Gelu", [to.with_bias()], to.outputs[:1])
    return True


def _fast_gelu(to: Expansion) -> bool:
    to.make("Gelu", [to.with_bias()], to.outputs[:1], approximate="tanh")
    return True


def _quick_gelu(to: Expansion) -> bool:
    x = to.input(0)
    scaled = to.make("Mul", [x, to.number(to.attributes.get("alpha", 1.702), like=x)])
    to.make("Mul", [x, to.make("Sigmoid", [scaled])], to.outputs[:1])
    return True


def _fused_matmul(to: Expansion) -> bool:
    if any(to.attributes.get(name) for name in ("transBatchA", "transBatchB")):
        return False
    sides = [
        to.make("Einsum", [to.input(place)], equation="...ij->...ji") if to.attributes.get(turned) else to.input(place)
        for place, turned in enumerate(("transA", "transB"))
    ]
    alpha = to.attributes.get("alpha", 1.0)
    if alpha == 1:
        to.make("MatMul", sides, to.outputs[:1])
    else:
        product = to.make("MatMul", sides)
        to.make("Mul", [product, to.number(alpha, like=product)], to.outputs[:1])
    return True


def _skip_norm(norm: str) -> Callable[[Expansion], bool]:
    def expand(to: Expansion) -> bool:
        layer_norm = norm == "LayerNormalization"
        scale_and_shift = [to.input(2), *([to.input(3)] if layer_norm and to.input(3) else [])]
        bias = to.input(4 if layer_norm else 3)
        total = to.make("Add", [to.input(0), to.input(1)])
        if bias:
            total = to.make("Add", [total, bias])
        to.make(norm, [total, *scale_and_shift], to.outputs[:1], axis=-1, epsilon=to.attributes.get("epsilon", 1e-12))
        if len(to.outputs) > 3 and to.outputs[3]:
            to.make("Identity", [total], to.outputs[3:4])
        return not any(to.outputs[1:3])  # the mean and the inverse deviation

    return expand


def _embed_layer_norm(to: Expansion) -> bool:
    ids, segments, words, positions, of_segments, scale, shift, mask, places = (to.input(at) for at in range(9))
    if places:
        total = to.make("Add", [to.make("Gather", [words, ids]), to.make("Gather", [positions, places])])
    else:
        length = to.make("Slice", [to.make("Shape", [ids]), to.integers(1), to.integers(2), to.integers(0)])
        rows = to.make("Slice", [positions, to.integers(0), length, to.integers(0)])
        total = to.make("Add", [to.make("Gather", [words, ids]), rows])
    if segments and of_segments:
        total = to.make("Add", [total, to.make("Gather", [of_segments, segments])])
    epsilon = to.attributes.get("epsilon", 1e-12)
    to.make("LayerNormalization", [total, scale, shift], to.outputs[:1], axis=-1, epsilon=epsilon)
    if len(to.outputs) > 1 and to.outputs[1]:
        if not mask:
            return False
        to.make("ReduceSum", [mask, to.integers(1)], to.outputs[1:2], keepdims=0)
    if len(to.outputs) > 2 and to.outputs[2]:
        to.make("Identity", [total], to.outputs[2:3])
    return True


def _matmul_n_bits(to: Expansion) -> bool:
    """Weights of four or eight bits, one scale for each block of a column, packed with the lower half first."""
    bits, block = to.attributes.get("bits", 4), to.attributes["block_size"]
    rows, columns = to.attributes["K"], to.attributes["N"]
    if bits not in (4, 8) or to.input(4) or rows % block:
        return False
    packed, scales, zeros = to.input(1), to.input(2), to.input(3)
    blocks = rows // block
    steps = _unpacked(to, packed, bits, (columns, blocks, block))
    if zeros:
        if bits == 4 and blocks % 2:
            return False  # padded in every row
        zero = _unpacked(to, zeros, bits, (columns, blocks, 1))
    else:
        zero = to.constant(np.array(2 ** (bits - 1), np.uint8))
    scale = to.make("Reshape", [scales, to.integers(columns, blocks, 1)])
    distance = to.make("Sub", [to.make("CastLike", [steps, scales]), to.make("CastLike", [zero, scales])])
    weight = to.make("Reshape", [to.make("Mul", [distance, scale]), to.integers(columns, rows)])
    turned = to.make("Transpose", [weight], perm=[1, 0])
    to.product(to.input(0), turned, to.input(5))
    return True


def _unpacked(to: Expansion, packed: str, bits: int, shape: tuple[int, ...]) -> str:
    if bits == 4:
        flat = to.make("Reshape", [packed, to.integers(-1, 1)])
        high = to.make("BitShift", [flat, to.constant(np.array(4, np.uint8))], direction="RIGHT")
        raised = to.make("BitShift", [flat, to.constant(np.array(4, np.uint8))], direction="LEFT")
        low = to.make("BitShift", [raised, to.constant(np.array(4, np.uint8))], direction="RIGHT")
        packed = to.make("Concat", [low, high], axis=1)
    return to.make("Reshape", [packed, to.integers(*shape)])


def _early_rms_norm(to: Expansion) -> bool:
    axis, epsilon = to.attributes.get("axis", -1), to.attributes.get("epsilon", 1e-5)
    to.make("RMSNormalization", [to.input(0), to.input(1)], to.outputs[:1], axis=axis, epsilon=epsilon)
    return not any(to.outputs[1:])


_EARLY = ("SimplifiedLayerNormalization",)
EXPANSIONS: Mapping[str, Callable[[Expansion], bool]] = {
    "Attention": attention,
    "BiasGelu": _gelu,
    "EmbedLayerNormalization": _embed_layer_norm,
    "FastGelu": _fast_gelu,
    "FusedMatMul": _fused_matmul,
    "Gelu": _gelu,
    "MatMulNBits": _matmul_n_bits,
    "MultiHeadAttention": multi_head_attention,
    "QuickGelu": _quick_gelu,
    "SimplifiedLayerNormalization": _early_rms_norm,
    "SkipLayerNormalization": _skip_norm("LayerNormalization"),
    "SkipSimplifiedLayerNormalization": _skip_norm("RMSNormalization"),
    **QUANTIZED,
}
"""Each writes the standard nodes, and returns whether it could."""
