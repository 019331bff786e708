"""Compare the outputs of the same attention in JAX, compiled and operation by operation.

On a CPU, JAX 0.10.2 compiles it to wrong outputs when two or more items share keys and values.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

HEADS, QUERIES, KEYS, SIZE = 12, 128, 256, 64


def attention(query: Any, key: Any, value: Any) -> Any:
    key, value = (jnp.broadcast_to(each, (len(query), *each.shape)) for each in (key, value))
    weights = jax.nn.softmax(jnp.einsum("bhqs,bhks->bhqk", query, key) * SIZE**-0.5, axis=-1)
    return jnp.einsum("bhqk,bhks->bhqs", weights, value)


def main() -> None:
    rng = np.random.default_rng(0)
    key, value = (rng.normal(size=(HEADS, KEYS, SIZE)).astype(np.float32) for _ in range(2))
    for items in (1, 2):
        query = rng.normal(size=(items, HEADS, QUERIES, SIZE)).astype(np.float32)
        compiled = np.asarray(jax.jit(attention)(query, key, value))
        with jax.disable_jit():
            plain = np.asarray(attention(query, key, value))
        error = np.linalg.norm(compiled - plain) / np.linalg.norm(plain)
        verdict = "the same" if error < 1e-4 else "WRONG"
        print(f"JAX {jax.__version__}, {items} items: compiled and plain differ by {error:.1e}: {verdict}")


if __name__ == "__main__":
    main()
