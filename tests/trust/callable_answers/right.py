"""Right callables: two ways or more to compute the same, each in the type of its inputs, beside a plain reference.

Each problem draws its inputs in a type and a size; what a reader would call right must be called right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any
FLOATS = ("float16", "float32", "float64")


@dataclass(frozen=True)
class Problem:
    """``draw(rng, kind, n)`` gives the arguments."""

    name: str
    draw: Callable[[np.random.Generator, str, int], tuple[Any, ...]]
    reference: Callable[..., Any]
    right: Sequence[Callable[..., Any]]
    kinds: tuple[str, ...] = ("float32", "float64")


def vectors(count: int, low: float | None = None) -> Callable[[np.random.Generator, str, int], tuple[Any, ...]]:
    def draw(rng: np.random.Generator, kind: str, n: int) -> tuple[Any, ...]:
        some = (rng.standard_normal(n) if low is None else rng.uniform(low, low + 1, n) for _ in range(count))
        return tuple(each.astype(kind) for each in some)

    return draw


def matrices(count: int) -> Callable[[np.random.Generator, str, int], tuple[Any, ...]]:
    def draw(rng: np.random.Generator, kind: str, n: int) -> tuple[Any, ...]:
        side = max(2, int(n**0.5))
        return tuple(rng.standard_normal((side, side)).astype(kind) for _ in range(count))

    return draw


def whole_numbers(rng: np.random.Generator, kind: str, n: int) -> tuple[Any, ...]:
    side = max(2, int(n**0.5))
    return tuple(rng.integers(-128, 128, (side, side)).astype(kind) for _ in range(2))


def ragged(rng: np.random.Generator, kind: str, n: int) -> tuple[Any, ...]:
    """Draw rows of several lengths."""
    return ([rng.standard_normal(int(size)).astype(kind) for size in rng.integers(1, max(2, n // 8), 8)],)


def naive_sum(values: Array) -> Array:
    total = values.dtype.type(0)
    for each in values.ravel():
        total = total + each
    return total


def blocked_sum(values: Array) -> Array:
    return values.dtype.type(sum(float(part.sum()) for part in np.array_split(values, 7)))


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def softmax_by_logs(x: Array) -> Array:
    shifted = x - x.max(axis=-1, keepdims=True)
    return np.exp(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


def layer_norm(x: Array) -> Array:
    return (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + x.dtype.type(1e-5))


def tiled_product(a: Array, b: Array) -> Array:
    out = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for k in range(0, a.shape[1], 5):
        out += a[:, k : k + 5] @ b[k : k + 5]
    return out


def convolved(x: Array, w: Array) -> Array:
    return np.convolve(x, w[:5], "valid")


def convolved_by_windows(x: Array, w: Array) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(x, min(5, len(w)))
    return windows @ w[:5][::-1]


def in_torch(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give the arrays to PyTorch, and its answer back as an array."""

    def call(*arrays: Array) -> Any:
        import torch

        found = function(torch, *(torch.from_numpy(np.ascontiguousarray(each)) for each in arrays))
        return found.numpy()

    return call


def layer_norm_in_torch(x: Array) -> Array:
    return in_torch(lambda torch, t: torch.nn.functional.layer_norm(t, t.shape[-1:]))(x)


def quantized(x: Array) -> Array:
    scale = np.abs(x).max() / 127
    return np.clip(np.rint(x / scale), -128, 127).astype(np.int8)


def quantized_by_a_factor(x: Array) -> Array:
    return np.clip(np.rint(x * (x.dtype.type(127) / np.abs(x).max())), -128, 127).astype(np.int8)


PROBLEMS = (
    Problem("sum", vectors(1), np.sum, (np.sum, naive_sum, blocked_sum, lambda x: x[::-1].sum())),
    Problem("positive sum", vectors(1, 0.0), np.sum, (np.sum, naive_sum, blocked_sum, lambda x: np.add.reduce(x))),
    Problem("mean", vectors(1, 3.0), np.mean, (np.mean, lambda x: naive_sum(x) / x.dtype.type(x.size))),
    Problem("variance", vectors(1, 3.0), np.var, (np.var, lambda x: np.square(x - x.mean()).mean())),
    Problem("norm", vectors(1), np.linalg.norm, (np.linalg.norm, lambda x: np.sqrt(np.dot(x, x)))),
    Problem("dot", vectors(2), np.dot, (np.dot, lambda a, b: (a * b).sum(), lambda a, b: np.einsum("i,i->", a, b))),
    Problem("product", matrices(2), np.matmul, (np.matmul, tiled_product, in_torch(lambda torch, a, b: a @ b))),
    Problem("softmax", matrices(1), softmax, (softmax, softmax_by_logs, in_torch(lambda torch, x: x.softmax(-1)))),
    Problem("layer norm", matrices(1), layer_norm, (layer_norm, layer_norm_in_torch)),
    Problem("exp", vectors(1), np.exp, (np.exp, lambda x: np.exp2(x * x.dtype.type(np.log2(np.e))))),
    Problem("tanh", vectors(1), np.tanh, (np.tanh, in_torch(lambda torch, x: x.tanh()))),
    Problem("running sum", vectors(1), np.cumsum, (np.cumsum, in_torch(lambda torch, x: x.cumsum(0)))),
    Problem("convolution", vectors(2), convolved, (convolved, convolved_by_windows)),
    Problem("largest", vectors(1), np.max, (np.max, lambda x: np.sort(x)[-1]), FLOATS),
    Problem("place of the largest", vectors(1), np.argmax, (np.argmax, lambda x: np.argsort(x)[-1]), FLOATS),
    Problem("sorted", vectors(1), np.sort, (np.sort, lambda x: np.sort(x, kind="stable")), FLOATS),
    Problem("relu", vectors(1), lambda x: np.maximum(x, 0), (lambda x: np.where(x > 0, x, 0), lambda x: x * (x > 0))),
    Problem("transposed", matrices(1), np.transpose, (lambda x: x.T, lambda x: np.ascontiguousarray(x.T)), FLOATS),
    Problem("scaled sum", vectors(2), lambda a, b: 2 * a + b, (lambda a, b: a + a + b, lambda a, b: b + a * 2), FLOATS),
    Problem(
        "product of int8",
        whole_numbers,
        lambda a, b: a.astype(np.int64) @ b.astype(np.int64),
        (
            lambda a, b: a.astype(np.int32) @ b.astype(np.int32),
            lambda a, b: (a.astype(np.float64) @ b).astype(np.int64),
        ),
        ("int8",),
    ),
    Problem("quantized", vectors(1), quantized, (quantized, quantized_by_a_factor), ("float32",)),
    Problem(
        "ragged means",
        ragged,
        lambda rows: [row.mean() for row in rows],
        (
            lambda rows: [row.sum() / row.dtype.type(len(row)) for row in rows],
            lambda rows: [np.float32(row.astype(np.float64).mean()) for row in rows],
        ),
        ("float32",),
    ),
    Problem(
        "statistics",
        vectors(1, 1.0),
        lambda x: {"least": x.min(), "most": x.max(), "sum": x.sum()},
        (lambda x: {"least": np.sort(x)[0], "most": np.sort(x)[-1], "sum": np.sort(x).sum()},),
    ),
)


def bfloat16_problem() -> Problem:
    """Make products of bfloat16, which PyTorch sums in float32 and rounds."""
    import torch

    def draw(rng: np.random.Generator, kind: str, n: int) -> tuple[Any, ...]:
        side = max(2, int(n**0.5))
        return tuple(torch.from_numpy(rng.standard_normal((side, side))).to(torch.bfloat16) for _ in range(2))

    def in_blocks(a: Any, b: Any) -> Any:
        half = a.shape[1] // 2
        return (a[:, :half].float() @ b[:half].float() + a[:, half:].float() @ b[half:].float()).to(torch.bfloat16)

    return Problem(
        "product of bfloat16",
        draw,
        lambda a, b: a @ b,
        (lambda a, b: a @ b, lambda a, b: (a.float() @ b.float()).to(torch.bfloat16), in_blocks),
        ("bfloat16",),
    )
