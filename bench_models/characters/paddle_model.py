"""The model as a Paddle layer."""

from __future__ import annotations

from typing import Any

import paddle
from fairlap.bench_models.characters.spec import SIZE
from fairlap.bench_models.gpt2.weights import EPSILON
from fairlap.bench_models.paddle_weights import turned, with_weights
from fairlap.models.arrays import Arrays
from paddle import nn
from paddle.nn import functional

WIDTH, HEADS, HEAD = SIZE.width, SIZE.heads, SIZE.head


class Attention(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.c_attn = nn.Linear(WIDTH, 3 * WIDTH)
        self.c_proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, hidden: Any) -> Any:
        """Paddle's own attention has heads behind positions."""
        batch, tokens, width = hidden.shape
        parts = self.c_attn(hidden).reshape([batch, tokens, 3, HEADS, HEAD]).unbind(2)
        attended = functional.scaled_dot_product_attention(*parts, is_causal=True)
        return self.c_proj(attended.reshape([batch, tokens, width]))


class Perceptron(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.c_fc = nn.Linear(WIDTH, 4 * WIDTH)
        self.c_proj = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, hidden: Any) -> Any:
        return self.c_proj(functional.gelu(self.c_fc(hidden), approximate=True))


class Block(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(WIDTH, EPSILON)
        self.attn = Attention()
        self.ln_2 = nn.LayerNorm(WIDTH, EPSILON)
        self.mlp = Perceptron()

    def forward(self, hidden: Any) -> Any:
        hidden = hidden + self.attn(self.ln_1(hidden))
        return hidden + self.mlp(self.ln_2(hidden))


class Characters(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.wte = nn.Embedding(SIZE.vocabulary, WIDTH)
        self.wpe = nn.Embedding(SIZE.context, WIDTH)
        self.h = nn.LayerList([Block() for _ in range(SIZE.layers)])
        self.ln_f = nn.LayerNorm(WIDTH, EPSILON)

    def forward(self, input_ids: Any) -> tuple[Any]:
        hidden = self.wte(input_ids) + self.wpe.weight[: input_ids.shape[1]]
        for block in self.h:
            hidden = block(hidden)
        return (paddle.matmul(self.ln_f(hidden), self.wte.weight, transpose_y=True),)


def build(weights: Arrays) -> Any:
    return with_weights(Characters(), {name: canonical(name, array) for name, array in weights.items()})


def canonical(name: str, array: Any) -> Any:
    """Turn a weight to the spec's layout; the embedding, which is also the last layer, stays."""
    return array if name.startswith(("wte", "wpe")) else turned(array)
