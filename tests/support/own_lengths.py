"""Models of one's own that take any length, as a user of ``fairlap compare own_lengths:encoder`` would write them.

Those with a mask answer the same where a sequence is padded; the others mix what they compute along it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

WORDS, WIDTH, HEADS = 300, 96, 4


def weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)

    def drawn(*shape: int) -> np.ndarray:
        return np.asarray(rng.standard_normal(shape) / np.sqrt(shape[0]), np.float32)

    found = {"words": drawn(WORDS, WIDTH), "up": drawn(WIDTH, 4 * WIDTH), "down": drawn(4 * WIDTH, WIDTH)}
    return found | {name: drawn(WIDTH, WIDTH) for name in ("query", "key", "value", "out")}


def tokens(seq: int) -> tuple[np.ndarray, np.ndarray]:
    """And the mask of a sequence without padding."""
    return np.random.default_rng(5).integers(1, WORDS, (1, seq)).astype(np.int32), np.ones((1, seq), np.int32)


def attended(library: Any, held: Any, ids: Any, mask: Any) -> Any:
    """One layer in jax.numpy or NumPy."""
    state = held["words"][ids]
    batch, length = ids.shape
    query, key, value = (
        (state @ held[name]).reshape(batch, length, HEADS, -1).transpose(0, 2, 1, 3)
        for name in ("query", "key", "value")
    )
    scores = query @ key.transpose(0, 1, 3, 2) * (WIDTH / HEADS) ** -0.5
    scores = library.where(mask[:, None, None, :] == 1, scores, -1e30)
    shares = library.exp(scores - scores.max(-1, keepdims=True))
    shares = shares / shares.sum(-1, keepdims=True)
    joined = (shares @ value).transpose(0, 2, 1, 3).reshape(batch, length, WIDTH)
    state = state + joined @ held["out"]
    return state + library.maximum(state @ held["up"], 0) @ held["down"]


def jax_encoder(seq: int = 32) -> Any:
    import jax

    def forward(held: Any, ids: Any, mask: Any) -> Any:
        return attended(jax.numpy, held, ids, mask)

    return forward, weights(), tokens(seq)


def jax_averaging(seq: int = 32) -> Any:
    def forward(held: Any, ids: Any) -> Any:
        state = held["words"][ids]
        return state - state.mean(1, keepdims=True)

    return forward, {"words": weights()["words"]}, tokens(seq)[:1]


def _encoder() -> Any:
    import torch

    class Encoder(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            for name, array in weights().items():
                self.register_parameter(name, torch.nn.Parameter(torch.from_numpy(array)))

        def forward(self, ids: Any, mask: Any) -> Any:
            state = self.words[ids.long()]
            batch, length, _ = state.shape
            query, key, value = (
                (state @ each).view(batch, length, HEADS, -1).transpose(1, 2)
                for each in (self.query, self.key, self.value)
            )
            shown = (mask == 1)[:, None, None, :]
            mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=shown)
            state = state + mixed.transpose(1, 2).reshape(batch, length, WIDTH) @ self.out
            return state + torch.relu(state @ self.up) @ self.down

    return Encoder().eval()


def encoder(seq: int = 32) -> Any:
    import torch

    return _encoder(), tuple(map(torch.from_numpy, tokens(seq)))


def averaging(seq: int = 32) -> Any:
    """Average over the whole sequence, padding included."""
    import torch

    class Averaging(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.words = torch.nn.Parameter(torch.from_numpy(weights()["words"]))

        def forward(self, ids: Any) -> Any:
            state = self.words[ids.long()]
            return state - state.mean(1, keepdim=True)

    return Averaging().eval(), tuple(map(torch.from_numpy, tokens(seq)[:1]))


def unseeded(seq: int = 32) -> Any:
    import torch

    return torch.nn.Sequential(torch.nn.Linear(8, 8)), (torch.ones(1, seq, 8),)


def of_one_size() -> Any:
    return averaging(16)


def exported(path: Path) -> Path:
    """Save ``encoder`` as an ExportedProgram whose sequence is open."""
    import torch

    length = torch.export.Dim("seq", min=2, max=256)
    ids, mask = map(torch.from_numpy, tokens(24))
    shapes = {"ids": {1: length}, "mask": {1: length}}
    torch.export.save(torch.export.export(_encoder(), (ids, mask), dynamic_shapes=shapes), path)
    return path


def in_keras(path: Path) -> Path:
    """Each token for itself, so padding changes no other."""
    from fairlap.models.sources.tensorflow_files.keras_models import use_backend

    use_backend("tensorflow")
    import keras

    keras.utils.set_random_seed(0)
    ids = keras.Input((None,), name="ids", dtype="int32")
    state = keras.layers.Embedding(WORDS, WIDTH)(ids)
    keras.Model(ids, keras.layers.Dense(WIDTH, activation="relu", name="out")(state)).save(path)
    return path


def in_jax_by_hand() -> tuple[Callable[[np.ndarray, np.ndarray], Any], Callable[[], int]]:
    """Make a call that ends when its answer is there, and count the programs that JAX has compiled."""
    import jax

    forward, held, _ = jax_encoder()
    answer, held = jax.jit(forward), jax.device_put(held)
    return lambda ids, mask: jax.block_until_ready(answer(held, ids, mask)), lambda: int(answer._cache_size())


def in_torch_by_hand() -> tuple[Callable[[np.ndarray, np.ndarray], Any], Callable[[], int]]:
    import torch

    torch.set_num_threads(1)
    model = _encoder().requires_grad_(False)
    torch.set_grad_enabled(False)
    return lambda ids, mask: model(torch.from_numpy(ids), torch.from_numpy(mask)), lambda: 0
