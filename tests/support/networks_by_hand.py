"""Networks of graphs, sequences and texts, written once more in plain PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from layers_by_hand import ByHand
from torch import nn
from torch.nn import functional

Tensors = Mapping[str, Any]


class Gnn(ByHand):
    def __call__(self, features: Any, senders: Any, receivers: Any) -> Any:
        nodes = self.linear("in", features)
        for number in range(3):
            name = f"rounds.{number}"
            sums = self.linear(f"{name}.own", nodes).clone()
            for item, (own, other) in enumerate(zip(senders, receivers, strict=True)):
                for sender, receiver in zip(own.tolist(), other.tolist(), strict=True):
                    message = self.linear(f"{name}.sender", nodes[item, sender])
                    message = message + self.linear(f"{name}.receiver", nodes[item, receiver])
                    sums[item, receiver] += message.relu()
            nodes = nodes + self.layer_norm(f"{name}.norm", sums).relu()
        return self.linear("head", nodes.mean(1))


class Tcn(ByHand):
    def __call__(self, history: Any) -> Any:
        hidden = history.transpose(1, 2)
        for number, dilation in enumerate((1, 2, 4, 8, 16)):
            inside = self._causal(f"blocks.{number}.first", hidden, dilation).relu()
            inside = self._causal(f"blocks.{number}.second", inside, dilation)
            beside = f"blocks.{number}.beside"
            hidden = hidden if number else self._causal(beside, hidden, dilation)
            hidden = (hidden + inside).relu()
        return self.linear("head", hidden[:, :, -1]).unflatten(-1, (24, 7))

    def _causal(self, name: str, value: Any, dilation: int) -> Any:
        weight = self.part(f"{name}.weight")
        before = (weight.shape[-1] - 1) * dilation
        return functional.conv1d(
            functional.pad(value, (before, 0)), weight, self.part(f"{name}.bias"), dilation=dilation
        )


class Lstm(ByHand):
    def __call__(self, history: Any) -> Any:
        for number in range(2):
            name = f"layers.{number}"
            by_input, by_state = (self.part(f"{name}.{part}")[0] for part in ("by_input", "by_state"))
            bias = self.part(f"{name}.bias")[0].unflatten(0, (2, -1)).sum(0)
            hidden = cell = history.new_zeros((len(history), 64))
            states = []
            for step in history.unbind(1):
                gates = functional.linear(step, by_input) + functional.linear(hidden, by_state) + bias
                into, out, keep, new = gates.chunk(4, -1)
                cell = keep.sigmoid() * cell + into.sigmoid() * new.tanh()
                hidden = out.sigmoid() * cell.tanh()
                states.append(hidden)
            history = torch.stack(states, 1)
        return self.linear("head", history[:, -1]).unflatten(-1, (24, 7))


class Clip(ByHand):
    def __call__(self, image: Any, texts: Any) -> Any:
        patches = self.convolution("image.patches", image, stride=8).flatten(2).transpose(1, 2)
        one = self._vector("image", self._tower("image", patches + self.part("image.positions"))[:, 0])
        tokens = self.part("text.embedding.weight")[texts.long()]
        other = self._tower("text", tokens + self.part("text.positions"), causal=True)
        products = torch.einsum("bd,btd->bt", one, self._vector("text", other[:, :, -1]))
        return products * self.part("sharpness")

    def _tower(self, name: str, hidden: Any, causal: bool = False) -> Any:
        for number in range(4):
            own = f"{name}.layers.{number}"
            normed = self.layer_norm(f"{own}.norm1", hidden)
            hidden = hidden + self.attention(f"{own}.attention", normed, 4, causal=causal)
            wide = functional.gelu(self.linear(f"{own}.first", self.layer_norm(f"{own}.norm2", hidden)))
            hidden = hidden + self.linear(f"{own}.second", wide)
        return self.layer_norm(f"{name}.norm", hidden)

    def _vector(self, name: str, token: Any) -> Any:
        return functional.normalize(self.linear(f"{name}.projection", token), dim=-1)


class Conformer(ByHand):
    """Of PyTorch's own modules, in the order of torchaudio's layer."""

    def __init__(self, weights: Mapping[str, Any]) -> None:
        super().__init__(weights)
        width, mels = self.part("in.weight").shape
        channels = self.part("fewer.0.weight").shape[0]
        assert mels == channels * 20
        self.fewer = [self._filled(nn.Conv2d(c, channels, 3, 2, 1), f"fewer.{n}") for n, c in enumerate((1, channels))]
        self.inward = self._filled(nn.Linear(mels, width), "in")
        count = sum(name.endswith("attention.query.weight") for name in weights)
        self.layers = [self._layer(f"layers.{number}", width) for number in range(count)]
        self.head = self._filled(nn.Linear(width, 29), "head")

    def __call__(self, features: Any) -> Any:
        image = features[:, None]
        for each in self.fewer:
            image = each(image).relu()
        hidden = self.inward(image.transpose(1, 2).flatten(2))
        for before, norm1, attention, convolution, after, norm in self.layers:
            hidden = hidden + 0.5 * before(hidden)
            normed = norm1(hidden)
            hidden = hidden + attention(normed, normed, normed, need_weights=False)[0]
            first, *rest = convolution
            inside = first(hidden).transpose(1, 2)
            for each in rest:
                inside = each(inside)
            hidden = hidden + inside.transpose(1, 2)
            hidden = norm(hidden + 0.5 * after(hidden))
        return self.head(hidden)

    def parameters(self) -> int:
        modules = nn.ModuleList([*self.fewer, self.inward, self.head, *map(nn.ModuleList, self.layers)])
        return sum(each.numel() for each in modules.parameters())

    def _layer(self, name: str, width: int) -> list[Any]:
        own, norm2 = f"{name}.convolution", nn.BatchNorm1d(width, eps=1e-3)
        for part in ("running_mean", "running_var"):
            getattr(norm2, part).data = self.part(f"{own}.norm2.{part}")
        convolution = nn.ModuleList(
            [
                self._filled(nn.LayerNorm(width), f"{own}.norm"),
                self._filled(nn.Conv1d(width, 2 * width, 1), f"{own}.gated"),
                nn.GLU(dim=1),
                self._filled(nn.Conv1d(width, width, 31, padding=15, groups=width), f"{own}.each"),
                self._filled(norm2, f"{own}.norm2"),
                nn.SiLU(),
                self._filled(nn.Conv1d(width, width, 1), f"{own}.mixed"),
            ]
        ).eval()
        attention = nn.MultiheadAttention(width, 4, batch_first=True, dtype=torch.float64).eval()
        parts = [f"{name}.attention.{part}" for part in ("query", "key", "value")]
        attention.in_proj_weight.data = torch.cat([self.part(f"{part}.weight") for part in parts])
        attention.in_proj_bias.data = torch.cat([self.part(f"{part}.bias") for part in parts])
        self._filled(attention.out_proj, f"{name}.attention.output")
        norms = [self._filled(nn.LayerNorm(width), f"{name}.{part}") for part in ("norm1", "norm")]
        halves = [self._perceptron(f"{name}.{part}", width) for part in ("before", "after")]
        return [halves[0], norms[0], attention, convolution, halves[1], norms[1]]

    def _perceptron(self, name: str, width: int) -> Any:
        return nn.Sequential(
            self._filled(nn.LayerNorm(width), f"{name}.norm"),
            self._filled(nn.Linear(width, 4 * width), f"{name}.first"),
            nn.SiLU(),
            self._filled(nn.Linear(4 * width, width), f"{name}.second"),
        )

    def _filled(self, module: Any, name: str) -> Any:
        module.weight.data = self.part(f"{name}.weight").reshape(module.weight.shape)
        module.bias.data = self.part(f"{name}.bias")
        return module
