"""Scaled dot-product attention: softmax(query @ key^T * scale + mask) @ value."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fairlap.models.onnx_import.graph import Node, Tensor
from fairlap.models.onnx_import.patterns.view import GraphView

_HIDDEN = -1e9  # a score that is added to hide a key is at most this


@dataclass(frozen=True)
class _Scores:
    query: str
    turned_key: str
    scale: float
    mask: str = ""


def fuse_attention(view: GraphView, node: Node) -> Node | None:
    """Where the product of shares and values ends it."""
    softmax = view.producer(node.inputs[0], "Softmax")
    rank = len(view.shape(node.inputs[0]))
    if softmax is None or rank < 3 or len(view.shape(node.inputs[1])) != rank or not view.used_once(node.inputs[0]):
        return None
    if softmax.attributes.get("axis", -1) % rank != rank - 1:
        return None
    scores = _scores(view, softmax.inputs[0])
    if scores is None or len(view.shape(scores.query)) != rank:
        return None
    key = _key(view, scores.turned_key)
    causal = bool(scores.mask) and _is_causal(view, scores.mask, view.shape(node.inputs[0])[-2:])
    mask = () if causal or not scores.mask else (scores.mask,)
    attributes = {"scale": scores.scale, "causal": causal, "turned_key": not key[1]}
    return Node("FusedAttention", (scores.query, key[0], node.inputs[1], *mask), (), attributes)


def _scores(view: GraphView, name: str) -> _Scores | None:
    """Products of numbers before and after the product of matrices are one scale."""
    node = view.producer(name, "Add", "Mul", "Div", "MatMul")
    if node is None or not view.used_once(name):
        return None
    if node.operator == "MatMul":
        (query, before), (key, also) = (_without_factor(view, each) for each in node.inputs)
        return _Scores(query, key, before * also)
    if node.operator == "Add":
        for product, mask in (node.inputs, node.inputs[::-1]):
            found = _scores(view, product)
            if found is not None and not found.mask and _broadcasts(view.shape(mask), view.shape(name)):
                return replace(found, mask=mask)
        return None
    inner, factor = _without_factor(view, name)
    found = _scores(view, inner) if inner != name else None
    return replace(found, scale=found.scale * factor) if found is not None and not found.mask else None


def _without_factor(view: GraphView, name: str) -> tuple[str, float]:
    node = view.producer(name, "Mul", "Div")
    if node is None:
        return name, 1.0
    if node.operator == "Div":
        divisor = view.number(node.inputs[1])
        return (node.inputs[0], 1 / divisor) if divisor else (name, 1.0)
    parts = view.other_and_number(node)
    return parts if parts is not None else (name, 1.0)


def _key(view: GraphView, name: str) -> tuple[str, bool]:
    """Find the key, and whether its tokens come before its features; drop or replace a transposition."""
    node = view.producer(name, "Transpose")
    if node is None:
        return name, False
    rank = len(view.shape(name))
    perm = tuple(node.attributes.get("perm") or reversed(range(rank)))
    back = (*perm[:-2], perm[-1], perm[-2])
    if back == tuple(range(rank)):
        return node.inputs[0], True
    *lead, features, tokens = view.shape(name)
    turned = Tensor(f"{name}/key", view.values[name].dtype, (*lead, tokens, features))
    view.add(Node("Transpose", node.inputs, (turned.name,), {"perm": back}), turned)
    return turned.name, True


def _broadcasts(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    return len(shape) <= len(whole) and all(
        size in (1, wide) for size, wide in zip(reversed(shape), reversed(whole), strict=False)
    )


def _is_causal(view: GraphView, name: str, sizes: tuple[int, ...]) -> bool:
    """Whether a known mask hides from each token those that come after it, and nothing else."""
    mask = view.known.get(name)
    if mask is None or math.prod(mask.shape) != math.prod(sizes) or sizes[0] != sizes[1]:
        return False
    square = mask.reshape(sizes)
    later = np.triu(np.ones(sizes, bool), 1)
    return bool((square[later] <= _HIDDEN).all() and (square[~later] == 0).all())
