"""The work that is timed, in PyTorch and in JAX: from a kernel that does nothing to a launch-bound chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

CHAIN = 100
GEMMS = (256, 512, 1024, 2048, 4096, 8192)
EMPTY = "empty kernel"
_ADDED = 1 << 24
_NORMED = (8192, 1024)
_ATTENDED = (8, 16, 1024, 64)


@dataclass(frozen=True)
class Case:
    """A call that only enqueues, on whatever stream is current."""

    name: str
    call: Callable[[], Any]


def torch_cases(torch: Any, device: str = "cuda", gemms: tuple[int, ...] = GEMMS, added: int = _ADDED) -> list[Case]:
    """Make the cases, with outputs allocated before where possible: an allocation is not the kernel's time."""
    functional = torch.nn.functional
    made = partial(torch.randn, device=device, generator=torch.Generator(device).manual_seed(1))
    cases = []
    if device == "cuda":
        cases.append(Case(EMPTY, partial(torch.cuda._sleep, 0)))  # one thread that reads a clock twice
    one, other = made(added), made(added)
    cases.append(Case("vector add", partial(torch.add, one, other, out=torch.empty_like(one))))
    rows = made(*_NORMED)
    cases.append(Case("layernorm", partial(functional.layer_norm, rows, (_NORMED[1],))))
    half = torch.bfloat16
    for size in gemms:
        a, b = made(size, size).to(half), made(size, size).to(half)
        cases.append(Case(f"gemm {size}", partial(torch.mm, a, b, out=torch.empty_like(a))))
    q, k, v = (made(*_ATTENDED).to(half) for _ in range(3))
    cases.append(Case("attention", partial(functional.scaled_dot_product_attention, q, k, v)))
    small = made(64)
    cases.append(Case(f"chain of {CHAIN}", partial(_chained, partial(small.add_, 1.0))))
    return cases


def jax_cases(jax: Any, gemms: tuple[int, ...] = GEMMS, added: int = _ADDED) -> list[Case]:
    """Make the same cases, compiled; the chain is of separate calls, since XLA would make one kernel of it."""
    numpy = jax.numpy
    keys = iter(jax.random.split(jax.random.key(1), 64))

    def made(*shape: int) -> Any:
        return jax.random.normal(next(keys), shape)

    def layernorm(x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred / numpy.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)

    cases = [Case("vector add", partial(jax.jit(numpy.add), made(added), made(added)))]
    cases.append(Case("layernorm", partial(jax.jit(layernorm), made(*_NORMED))))
    multiply = jax.jit(numpy.matmul)
    for size in gemms:
        a, b = made(size, size).astype(numpy.bfloat16), made(size, size).astype(numpy.bfloat16)
        cases.append(Case(f"gemm {size}", partial(multiply, a, b)))
    batch, heads, length, width = _ATTENDED
    q, k, v = (made(batch, length, heads, width).astype(numpy.bfloat16) for _ in range(3))
    cases.append(Case("attention", partial(jax.jit(jax.nn.dot_product_attention), q, k, v)))
    add_one = jax.jit(lambda x: x + 1.0)
    small = made(64)

    def chained() -> Any:
        x = small
        for _ in range(CHAIN):
            x = add_one(x)
        return x

    cases.append(Case(f"chain of {CHAIN}", chained))
    return cases


def _chained(call: Callable[[], Any]) -> None:
    for _ in range(CHAIN):
        call()
