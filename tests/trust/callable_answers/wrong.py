"""Wrong callables of known kinds, each beside the reference that it claims to compute."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .right import layer_norm, softmax

Array = Any


def draw(rng: np.random.Generator, n: int = 256) -> tuple[Any, ...]:
    return rng.standard_normal(n).astype(np.float32), rng.standard_normal(n).astype(np.float32)


def draw_matrix(rng: np.random.Generator, n: int = 24) -> tuple[Any, ...]:
    return (rng.standard_normal((n, n)).astype(np.float32),)


def draw_bytes(rng: np.random.Generator, n: int = 256) -> tuple[Any, ...]:
    return (rng.integers(-128, 128, n).astype(np.int8),)


def draw_few_values(rng: np.random.Generator, n: int = 256) -> tuple[Any, ...]:
    return (rng.integers(-4, 4, n).astype(np.int8),)


@dataclass(frozen=True)
class Wrong:
    """``make`` gives a fresh callable, since some keep a state. ``structural`` ones are right for usual inputs."""

    name: str
    reference: Callable[..., Any]
    make: Callable[[], Callable[..., Any]]
    draw: Callable[..., Any] = draw
    structural: bool = False


def add(a: Array, b: Array) -> Array:
    return a + b


def dot(a: Array, b: Array) -> Array:
    return (a * b).sum()


def gelu(x: Array) -> Array:
    from scipy.special import erf  # type: ignore[import-untyped]

    return 0.5 * x * (1 + erf(x / np.sqrt(x.dtype.type(2))))


def gelu_by_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _off_by_one() -> Callable[..., Any]:
    def call(a: Array, b: Array) -> Array:
        out = a + b
        out[-1] = a[-1]
        return out

    return call


def _last_answer() -> Callable[..., Any]:
    kept: list[Any] = []

    def call(a: Array, b: Array) -> Array:
        kept.append(a + b)
        return kept[0] if len(kept) == 1 else kept.pop(0)

    return call


def _first_answer() -> Callable[..., Any]:
    kept: list[Any] = []

    def call(a: Array, b: Array) -> Array:
        if not kept:
            kept.append(a + b)
        return kept[0].copy()

    return call


def _one_in_sixty() -> Callable[..., Any]:
    calls = 0

    def call(a: Array, b: Array) -> Array:
        nonlocal calls
        calls += 1
        return np.zeros_like(a) if calls % 60 == 0 else a + b

    return call


def _visible_seeds() -> Callable[..., Any]:
    """Know the answers to inputs that were seen before it was made."""
    known = {draw(np.random.default_rng(seed))[0].tobytes() for seed in range(50)}

    def call(a: Array, b: Array) -> Array:
        return a + b if a.tobytes() in known else a

    return call


def _by_first_elements() -> Callable[..., Any]:
    kept: dict[bytes, Array] = {}

    def call(a: Array, b: Array) -> Array:
        return kept.setdefault(np.signbit(a[:1]).tobytes(), a + b)

    return call


def _future() -> Callable[..., Any]:
    def call(a: Array, b: Array) -> Any:
        found: Future[Any] = Future()
        threading.Timer(0.001, lambda: found.set_result(a + b)).start()
        return found

    return call


def _in_place() -> Callable[..., Any]:
    def call(a: Array, b: Array) -> Array:
        a += b
        return a.copy()

    return call


def _overflowing(x: Array) -> Array:
    return np.int64(x.sum(dtype=np.int8))


def _tile_of_four(a: Array, b: Array) -> Array:
    whole = len(a) // 4 * 4
    return np.concatenate([a[:whole] + b[:whole], np.zeros(len(a) - whole, a.dtype)])


def _through_memory(a: Array, b: Array) -> Array:
    """Take the first bytes of memory for the elements, whatever the strides are."""
    base = a if a.base is None or not isinstance(a.base, np.ndarray) else np.frombuffer(a.base, a.dtype)
    return base.reshape(-1)[: a.size].reshape(a.shape) + b


def _unshifted_softmax(x: Array) -> Array:
    e = np.exp(x)
    return e / e.sum(axis=-1, keepdims=True)


def _variance_in_one_pass(a: Array, b: Array) -> Array:
    return np.square(a).mean() - np.square(a.mean())


def _plain(function: Callable[..., Any]) -> Callable[[], Callable[..., Any]]:
    return lambda: function


@lru_cache(maxsize=1)
def _ones(n: int) -> Array:
    return np.ones(n, np.float32)


WRONG = (
    Wrong("off by one at the edge", add, _off_by_one),
    Wrong("the answer to the call before", add, _last_answer),
    Wrong("the first answer for ever", add, _first_answer),
    Wrong("one of sixty answers zero", add, _one_in_sixty),
    Wrong("right for visible seeds only", add, _visible_seeds),
    Wrong("kept by the first element", add, _by_first_elements),
    Wrong("a future", add, _future),
    Wrong("a function that computes later", add, lambda: lambda a, b: lambda: a + b),
    Wrong("a generator", add, lambda: lambda a, b: (x + y for x, y in zip(a, b, strict=True))),
    Wrong("changes its argument", add, _in_place),
    Wrong("zeros", add, lambda: lambda a, b: np.zeros_like(a)),
    Wrong("ones", add, lambda: lambda a, b: _ones(len(a))),
    Wrong("nothing", add, lambda: lambda a, b: None),
    Wrong("its argument", add, lambda: lambda a, b: a),
    Wrong("no numbers", add, lambda: lambda a, b: np.full_like(a, np.nan)),
    Wrong("infinite", add, lambda: lambda a, b: np.full_like(a, np.inf)),
    Wrong("float16", add, lambda: lambda a, b: (a + b).astype(np.float16)),
    Wrong("computed in float16", add, lambda: lambda a, b: (a.astype(np.float16) + b.astype(np.float16)).astype("f4")),
    Wrong("half of the elements", add, lambda: lambda a, b: (a + b)[: len(a) // 2]),
    Wrong("another shape", add, lambda: lambda a, b: (a + b)[:, None]),
    Wrong("in reverse", add, lambda: lambda a, b: (a + b)[::-1]),
    Wrong("a thousandth of noise", add, lambda: lambda a, b: a + b * np.float32(1.001)),
    Wrong("the difference", add, lambda: lambda a, b: a - b),
    Wrong("two answers", add, lambda: lambda a, b: (a + b, a)),
    Wrong("an object", add, lambda: lambda a, b: object()),
    Wrong("a last tile left out", dot, lambda: lambda a, b: np.dot(a[:-1], b[:-1])),
    Wrong("summed in float16", dot, lambda: lambda a, b: np.float32((a * b).astype(np.float16).sum())),
    Wrong("every second element", dot, lambda: lambda a, b: 2 * np.dot(a[::2], b[::2])),
    Wrong("negated", dot, lambda: lambda a, b: -np.dot(a, b)),
    Wrong("transposed", np.transpose, lambda: lambda x: x, draw_matrix),
    Wrong("the wrong axis", softmax, lambda: lambda x: softmax(x.T).T, draw_matrix),
    Wrong("a row left out", softmax, lambda: lambda x: np.vstack([softmax(x[:-1]), x[-1:]]), draw_matrix),
    Wrong("not normalised", softmax, lambda: lambda x: np.exp(x - x.max(axis=-1, keepdims=True)), draw_matrix),
    Wrong("one product for a matrix", lambda x: x @ x, lambda: lambda x: x * x, draw_matrix),
    Wrong("another epsilon", layer_norm, lambda: lambda x: layer_norm(x) * np.float32(0.999), draw_matrix),
    Wrong("an approximation", gelu, _plain(gelu_by_tanh), draw_matrix),
    Wrong("clipped", lambda x: x, lambda: lambda x: np.clip(x, -2, 2), draw_matrix),
    Wrong("the last of equal places", np.argmax, lambda: lambda x: len(x) - 1 - np.argmax(x[::-1]), draw_few_values),
    Wrong("overflows", lambda x: x.sum(dtype=np.int64), _plain(_overflowing), draw_bytes),
    Wrong("divides downwards", lambda x: x.astype(int) // 2, lambda: lambda x: (x / 2).astype(int), draw_bytes),
    Wrong("sorted downwards", np.sort, lambda: lambda x: np.sort(x)[::-1], draw_bytes),
    Wrong("tiles of four", add, _plain(_tile_of_four), structural=True),
    Wrong("ignores strides", add, _plain(_through_memory), structural=True),
    Wrong("overflows for large values", softmax, _plain(_unshifted_softmax), draw_matrix, structural=True),
    Wrong("cancels when clustered", lambda a, b: np.var(a), _plain(_variance_in_one_pass), structural=True),
    Wrong("wrong for one element", dot, lambda: lambda a, b: dot(a, b) if len(a) > 1 else a[0], structural=True),
    Wrong(
        "takes denormal numbers for one",
        add,
        lambda: lambda a, b: np.where(np.abs(a) < 1e-30, 1, a) + b,
        structural=True,
    ),
)
