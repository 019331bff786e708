"""The sizes, weights and key-value caches that models of GPT-2 share.

They are the prefill and the decoding step of GPT-2, and a small one that learns characters.

Weights have the names of the PyTorch checkpoint that is published for it, but linear layers lie (out, in).
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlap.models.spec import TOLERANCES, Fill, Normal, Tensor, Tolerance, Uniform, Weight

EPSILON = 1e-5
CONTINUATION = "continuation"

# Twelve layers of bfloat16 leave an error of 0.01 in logits and caches of order one, and of 0.065 in the worst of fifty
# thousand (PyTorch on three seeds; JAX and TensorFlow), more than the usual tolerance allows. The cosine is stricter
# in return: correct work stays at 0.9999; one attention left out, or one token changed, is below 0.99.
GPT2_TOLERANCES = {**TOLERANCES, "bf16": Tolerance(cosine=0.9995, absolute=1e-1, relative=1e-1)}


@dataclass(frozen=True)
class Size:
    layers: int
    heads: int
    width: int
    context: int
    vocabulary: int

    @property
    def head(self) -> int:
        return self.width // self.heads


SMALL = Size(layers=12, heads=12, width=768, context=1024, vocabulary=50_257)


def weights_of(size: Size) -> tuple[Weight, ...]:
    # The embedding is also what turns the last state into logits, and this makes those of order one.
    embedded = Normal(size.width**-0.5)
    return (
        Weight("wte.weight", (size.vocabulary, size.width), embedded),
        Weight("wpe.weight", (size.context, size.width), embedded),
        *(weight for layer in range(size.layers) for weight in _block(f"h.{layer}", size)),
        *_norm("ln_f", size),
    )


def caches(size: Size, positions: int, fill: Fill, prefix: str = "") -> tuple[Tensor, ...]:
    """Describe the keys and the values of every layer."""
    shape = ("batch", size.heads, positions, size.head)
    return tuple(Tensor(name, shape, fill) for name in cache_names(size, prefix))


def cache_names(size: Size, prefix: str = "") -> list[str]:
    return [f"{prefix}{part}_{layer}" for layer in range(size.layers) for part in ("keys", "values")]


def _block(name: str, size: Size) -> tuple[Weight, ...]:
    # All that the layers add to the residual stream together is as large as the embeddings that it begins with, so
    # that every layer shows in the logits and none drowns another. An average of a hundred values or so is 0.15 wide,
    # GELU lets 0.65 through.
    share = (2 / size.width) ** 0.5 / (2 * size.layers) ** 0.5
    return (
        *_norm(f"{name}.ln_1", size),
        *_linear(f"{name}.attn.c_attn", size.width, 3 * size.width, size.width**-0.5, bias=0.2),
        *_linear(f"{name}.attn.c_proj", size.width, size.width, share / 0.15 / size.width**0.5, bias=share / 2),
        *_norm(f"{name}.ln_2", size),
        *_linear(f"{name}.mlp.c_fc", size.width, 4 * size.width, size.width**-0.5, bias=0.2),
        *_linear(f"{name}.mlp.c_proj", 4 * size.width, size.width, share / 0.65 / (4 * size.width) ** 0.5, share / 2),
    )


def _norm(name: str, size: Size) -> tuple[Weight, Weight]:
    features = (size.width,)
    return Weight(f"{name}.weight", features, Uniform(0.5, 1.5)), Weight(f"{name}.bias", features, Normal(0.2))


def _linear(name: str, inward: int, outward: int, std: float, bias: float) -> tuple[Weight, Weight]:
    return Weight(f"{name}.weight", (outward, inward), Normal(std)), Weight(f"{name}.bias", (outward,), Normal(bias))
