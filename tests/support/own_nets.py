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


class Padded(nn.Module):  # type: ignore[misc]
    """Two tables whose rows of padding get no gradient by being looked up; one is the head as well."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH, padding_idx=0)
        self.kinds = nn.Embedding(VOCABULARY, WIDTH, padding_idx=-1)
        self.head = nn.Linear(WIDTH, VOCABULARY)
        self.head.weight = self.words.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        self.words(ids)  # which nothing needs, so that no export has it
        scores: torch.Tensor = self.head(torch.tanh(self.words(ids) + self.kinds(ids)).mean(1))
        return scores


def padded() -> Returned:
    torch.manual_seed(0)
    module = Padded()
    for each in (module.words, module.kinds):
        nn.init.normal_(each.weight)  # nn.Embedding begins with zeros there, of which a trained one keeps none
    ids = torch.tensor([[0, 0, 3, 19, 5, 1], [19, 2, 0, 4, 4, 8], [7, 0, 19, 0, 9, 2], [1, 2, 3, 4, 5, 6]])
    return module, (ids,)


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


class TwoHeaded(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.inside, self.scores, self.size = nn.Linear(6, WIDTH), nn.Linear(WIDTH, CLASSES), nn.Linear(WIDTH, 1)

    def forward(self, rows: torch.Tensor) -> dict[str, Any]:
        inside = torch.tanh(self.inside(rows))
        return {"scores": self.scores(inside), "further": (self.size(inside).squeeze(-1), inside)}


def two_headed() -> Returned:
    torch.manual_seed(0)
    return TwoHeaded(), (torch.randn(4, 6),)


def joint(outputs: Any, labels: Any) -> Any:
    """Of several outputs, in the nesting that the model returns; class weights are of the loss's own."""
    scores, (size, inside) = outputs["scores"], outputs["further"]
    weights = torch.linspace(0.5, 1.5, CLASSES, dtype=scores.dtype)
    named = nn.functional.cross_entropy(scores, labels, weights, label_smoothing=0.1)
    return named + nn.functional.huber_loss(size, labels.to(size.dtype)) + 0.01 * inside.square().sum()


def partly_detached(outputs: Any, labels: Any) -> Any:
    return smoothed(outputs, labels) * outputs.detach().square().mean()


class _Reversed(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(_context: Any, values: torch.Tensor) -> torch.Tensor:
        return values.clone()

    @staticmethod
    def backward(_context: Any, *slopes: Any) -> Any:
        return -slopes[0]


def by_numpy(outputs: Any, labels: Any) -> Any:
    return outputs.mean() * float(outputs.detach().numpy().std())


def with_backward_of_its_own(outputs: Any, labels: Any) -> Any:
    return smoothed(_Reversed.apply(outputs), labels)


def of_logits(outputs: Any, labels: Any) -> Any:
    """Of what a model of transformers returns."""
    return outputs.logits.square().mean()


def unlabelled(outputs: Any, labels: Any) -> Any:
    return outputs.square().mean()
