"""BERT-base as a PyTorch module."""

from __future__ import annotations

from typing import Any

import torch
from fairlap.bench_models.bert_base.spec import (
    EPSILON,
    HEADS,
    HIDDEN,
    INTERMEDIATE,
    LAYERS,
    POSITIONS,
    TYPES,
    VOCABULARY,
)
from fairlap.models.arrays import Arrays
from torch import nn
from torch.nn import functional


class Embeddings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(VOCABULARY, HIDDEN)
        self.position_embeddings = nn.Embedding(POSITIONS, HIDDEN)
        self.token_type_embeddings = nn.Embedding(TYPES, HIDDEN)
        self.LayerNorm = nn.LayerNorm(HIDDEN, EPSILON)

    def forward(self, input_ids: Any, token_type_ids: Any) -> Any:
        places = self.position_embeddings.weight[: input_ids.shape[1]]
        return self.LayerNorm(self.word_embeddings(input_ids) + places + self.token_type_embeddings(token_type_ids))


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(HIDDEN, HIDDEN)
        self.key = nn.Linear(HIDDEN, HIDDEN)
        self.value = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, hidden: Any, allowed: Any) -> Any:
        query, key, value = (
            layer(hidden).unflatten(-1, (HEADS, -1)).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=allowed)
        return attended.transpose(1, 2).flatten(2)


class AddAndNorm(nn.Module):
    def __init__(self, inward: int) -> None:
        super().__init__()
        self.dense = nn.Linear(inward, HIDDEN)
        self.LayerNorm = nn.LayerNorm(HIDDEN, EPSILON)

    def forward(self, result: Any, hidden: Any) -> Any:
        return self.LayerNorm(hidden + self.dense(result))


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.ModuleDict({"self": SelfAttention(), "output": AddAndNorm(HIDDEN)})
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(HIDDEN, INTERMEDIATE)})
        self.output = AddAndNorm(INTERMEDIATE)

    def forward(self, hidden: Any, allowed: Any) -> Any:
        hidden = self.attention["output"](self.attention["self"](hidden, allowed), hidden)
        return self.output(functional.gelu(self.intermediate["dense"](hidden)), hidden)


class BertBase(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embeddings = Embeddings()
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(Layer() for _ in range(LAYERS))})
        self.pooler = nn.ModuleDict({"dense": nn.Linear(HIDDEN, HIDDEN)})

    def forward(self, input_ids: Any, token_type_ids: Any, attention_mask: Any) -> tuple[Any, Any]:
        allowed = attention_mask.bool()[:, None, None, :]
        hidden = self.embeddings(input_ids, token_type_ids)
        for layer in self.encoder["layer"]:
            hidden = layer(hidden, allowed)
        return torch.tanh(self.pooler["dense"](hidden[:, 0])), hidden


def build(weights: Arrays) -> Any:
    with torch.device("meta"):  # without drawing initial weights, which takes seconds
        model = BertBase()
    model.load_state_dict({name: torch.tensor(array) for name, array in weights.items()}, assign=True)
    return model.eval()
