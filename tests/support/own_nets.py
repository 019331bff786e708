"""Networks of one's own in PyTorch, as a user of ``fairlap compare own_nets:convolutional`` would write them."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

CLASSES, TOKENS, VOCABULARY, WIDTH = 10, 6, 20, 16


class Convolutional(nn.Module):  # type: ignore[misc]
    def __init__(self, *, batch_norm: bool = False, dropout: float = 0.0) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.normalised = nn.BatchNorm2d(8) if batch_norm else nn.GroupNorm(4, 8)
        self.second = nn.Conv2d(8, 8, 3, stride=2)
        self.dropped = nn.Dropout(dropout)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        features = nn.functional.gelu(self.normalised(self.first(image)))
        features = torch.relu(self.second(nn.functional.max_pool2d(features, 2))).mean((2, 3))
        scores: torch.Tensor = self.head(self.dropped(features))
        return scores


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.before_attention, self.before_rest = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.joint, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.rest = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = states.shape
        joint = self.joint(self.before_attention(states)).split(width, -1)
        query, key, value = (each.view(batch, tokens, 2, -1).transpose(1, 2) for each in joint)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        states = states + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        added: torch.Tensor = self.rest(self.before_rest(states))
        return states + added


class Transformer(nn.Module):  # type: ignore[misc]
    """Its table of tokens is its head as well, and its scale is not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Parameter(0.02 * torch.randn(TOKENS, WIDTH))
        self.blocks = nn.Sequential(Block(), Block())
        self.normalised = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.table.weight
        self.register_buffer("scale", torch.full((WIDTH,), 1.5))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(self.normalised(self.blocks(self.table(ids) + self.places)) * self.scale)
        return scores


Returned = tuple[nn.Module, tuple[torch.Tensor, ...]]


def _with_images(module: nn.Module) -> Returned:
    return module, (torch.randn(4, 3, 12, 12),)


def convolutional() -> Returned:
    torch.manual_seed(0)
    return _with_images(Convolutional())


def perceptron() -> Returned:
    torch.manual_seed(0)
    return nn.Linear(4, 3), (torch.randn(2, 4),)


def normalised() -> Returned:
    torch.manual_seed(0)
    return _with_images(Convolutional(batch_norm=True))


def dropping() -> Returned:
    torch.manual_seed(0)
    return _with_images(Convolutional(dropout=0.1))


def transformer() -> Returned:
    torch.manual_seed(0)
    return Transformer(), (torch.randint(0, VOCABULARY, (4, TOKENS)),)


def partly_frozen() -> Returned:
    module, images = convolutional()
    module.get_submodule("first").requires_grad_(False)
    return module, images


def unused() -> Returned:
    module, images = convolutional()
    module.never = nn.Linear(2, 2)
    return module, images


def smoothed(outputs: Any, labels: Any) -> Any:
    return nn.functional.cross_entropy(outputs, labels, label_smoothing=0.1)


def unlabelled(outputs: Any, labels: Any) -> Any:
    return outputs.square().mean()
