"""Attention and what goes with it."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

from fairlap.models.onnx_import.operators.registry import operator


@operator("FusedAttention")
def fused_attention(
    library: Any, query: Any, key: Any, value: Any, mask: Any = None, *, scale: float, causal: bool, turned_key: bool
) -> Any:
    """Not of ONNX: what the pattern of its elementary operators is replaced by."""
    if turned_key:
        rank = len(key.shape)
        key = library.transpose(key, (*range(rank - 2), rank - 1, rank - 2))
    return library.attention(query, key, value, mask, scale, causal)


@operator("Attention")
def attention(
    library: Any,
    query: Any,
    key: Any,
    value: Any,
    mask: Any = None,
    past_key: Any = None,
    past_value: Any = None,
    lengths: Any = None,
    *,
    is_causal: int = 0,
    kv_num_heads: int = 0,
    q_num_heads: int = 0,
    scale: float = 0.0,
    softcap: float = 0.0,
    softmax_precision: int = 0,
    qk_matmul_output_mode: int = 0,
    left_window_size: int = -1,
    right_window_size: int = -1,
    count: int,
) -> Any:
    """Up to four results: the answer, the keys and values to keep, and the scores."""
    flat = len(query.shape) == 3
    if flat:
        query = _by_head(library, query, q_num_heads)
        key, value = (_by_head(library, each, kv_num_heads) for each in (key, value))
    known = 0
    if past_key is not None:
        known = past_key.shape[2]
        key, value = library.concat((past_key, key), 2), library.concat((past_value, value), 2)
    keys, values = (_repeated(library, each, query.shape[1]) for each in (key, value))
    factor = scale or 1 / math.sqrt(query.shape[-1])
    window = (left_window_size, right_window_size)
    added = _added(library, query, keys, mask, lengths, bool(is_causal), known, window)
    plain = count < 4 and not softcap and added is None
    causal = bool(is_causal) and plain and not known and query.shape[2] == keys.shape[2]
    scores = None
    if plain and (causal or not is_causal):
        answer = library.attention(query, keys, values, None, factor, causal)
    else:
        answer, scores = _spelt_out(library, query, keys, values, added, factor, softcap, qk_matmul_output_mode)
    if flat:
        batch, heads, tokens, size = answer.shape
        answer = library.reshape(library.transpose(answer, (0, 2, 1, 3)), (batch, tokens, heads * size))
    return (answer, key, value, scores)[:count] if count > 1 else answer


def _by_head(library: Any, value: Any, heads: int) -> Any:
    batch, tokens, size = value.shape
    return library.transpose(library.reshape(value, (batch, tokens, heads, size // heads)), (0, 2, 1, 3))


def _repeated(library: Any, value: Any, heads: int) -> Any:
    """Each head of keys or values serves several of queries."""
    batch, own, tokens, size = value.shape
    if own == heads:
        return value
    wide = library.reshape(value, (batch, own, 1, tokens, size))
    wide = library.broadcast(wide, (batch, own, heads // own, tokens, size))
    return library.reshape(wide, (batch, heads, tokens, size))


def _added(
    library: Any,
    query: Any,
    key: Any,
    mask: Any,
    lengths: Any,
    causal: bool,
    known: int,
    window: tuple[int, int],
) -> Any:
    """Compute what is added to the scores: zero, or minus infinity where a query shall not see a key.

    None if it is only causal or nothing, which libraries can do themselves.
    """
    rows, columns = query.shape[2], key.shape[2]
    hidden = library.full_like(library.reduce("max", query, (0, 1, 2, 3), False), -math.inf)
    zero = library.full_like(hidden, 0)
    parts = []
    if mask is not None:
        missing = columns - mask.shape[-1]
        if library.dtype_of(mask) == "bool":
            mask = library.where(mask, zero, hidden)
        if missing > 0:
            mask = library.pad(mask, [(0, 0)] * (len(mask.shape) - 1) + [(0, missing)], -math.inf)
        parts.append(library.cast_like(mask, query))
    column = library.reshape(library.arange(columns), (1, 1, 1, -1))
    row = library.reshape(library.arange(rows), (1, 1, -1, 1))
    if lengths is None:
        row = row + known
    else:
        lengths = library.reshape(library.cast(lengths, "int64"), (-1, 1, 1, 1))
        row = row + (lengths - rows)
        parts.append(library.where(column < lengths, zero, hidden))
    left, right = window
    if left >= 0:
        parts.append(library.where(row - column <= left, zero, hidden))
    if right >= 0:
        parts.append(library.where(column - row <= right, zero, hidden))
    if causal and (parts or known or rows != columns):
        parts.append(library.where(column <= row, zero, hidden))
    return reduce(lambda one, other: one + other, parts) if parts else None


def _spelt_out(
    library: Any, query: Any, key: Any, value: Any, added: Any, factor: float, softcap: float, mode: int
) -> tuple[Any, Any]:
    """Compute the answer and the scores: 0 as multiplied, 1 capped, 2 masked, 3 their softmax."""
    steps = [library.matmul(query * factor, library.transpose(key, (0, 1, 3, 2)))]
    steps.append(library.apply("Tanh", steps[0] / softcap) * softcap if softcap else steps[0])
    steps.append(steps[1] if added is None else steps[1] + added)
    largest = library.reduce("max", steps[2], (3,), True)
    nothing = library.apply("Equal", largest, library.full_like(largest, -math.inf))
    powers = library.apply("Exp", steps[2] - library.where(nothing, library.full_like(largest, 0), largest))
    total = library.reduce("sum", powers, (3,), True)
    steps.append(powers / library.where(nothing, library.full_like(total, 1), total))
    return library.matmul(steps[3], value), steps[mode]


@operator("RotaryEmbedding")
def rotary_embedding(
    library: Any,
    value: Any,
    cosines: Any,
    sines: Any,
    places: Any = None,
    *,
    interleaved: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Any:
    flat = len(value.shape) == 3
    shape = tuple(value.shape)
    if flat:  # (batch, tokens, heads, size) from here on
        value = library.reshape(value, (*shape[:2], num_heads, shape[2] // num_heads))
    else:
        value = library.transpose(value, (0, 2, 1, 3))
    turned = rotary_embedding_dim or value.shape[-1]
    if places is not None:
        cosines, sines = library.take_rows(cosines, places), library.take_rows(sines, places)
    cosines, sines = (library.reshape(each, (*each.shape[:2], 1, turned // 2)) for each in (cosines, sines))
    part = value[..., :turned]
    if interleaved:
        left, right = part[..., 0::2], part[..., 1::2]
    else:
        left, right = part[..., : turned // 2], part[..., turned // 2 :]
    real, imaginary = cosines * left - sines * right, sines * left + cosines * right
    if interleaved:
        pairs = [library.reshape(each, (*each.shape, 1)) for each in (real, imaginary)]
        part_after = library.reshape(library.concat(pairs, 4), tuple(part.shape))
    else:
        part_after = library.concat((real, imaginary), 3)
    whole = part_after if turned == value.shape[-1] else library.concat((part_after, value[..., turned:]), 3)
    return library.reshape(whole, shape) if flat else library.transpose(whole, (0, 2, 1, 3))
