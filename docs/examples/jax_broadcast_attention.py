"""The same attention in JAX, compiled and operation by operation: do the two answers agree?

JAX 0.10.2 on a CPU compiles it to wrong answers when keys and values are shared by two items or more.
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
        told = "the same" if error < 1e-4 else "WRONG"
        print(f"JAX {jax.__version__}, {items} items: compiled and plain differ by {error:.1e}: {told}")


if __name__ == "__main__":
    main()
