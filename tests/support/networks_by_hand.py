"""Networks written once more in plain PyTorch, in float64, on weights by the names that the models have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.nn import functional

Tensors = Mapping[str, Any]


class ByHand:
    """Layers that find their weights by name."""

    def __init__(self, weights: Mapping[str, Any]) -> None:
        self.weights = {name: torch.tensor(array, dtype=torch.float64) for name, array in weights.items()}

    def part(self, name: str) -> Any:
        return self.weights.get(name)

    def linear(self, name: str, value: Any) -> Any:
        return functional.linear(value, self.part(f"{name}.weight"), self.part(f"{name}.bias"))

    def layer_norm(self, name: str, value: Any, epsilon: float = 1e-5) -> Any:
        parts = self.part(f"{name}.weight"), self.part(f"{name}.bias")
        return functional.layer_norm(value, value.shape[-1:], *parts, epsilon)

    def convolution(self, name: str, image: Any, **how: Any) -> Any:
        return functional.conv2d(image, self.part(f"{name}.weight"), self.part(f"{name}.bias"), **how)

    def attention(self, name: str, hidden: Any, heads: int, seen: Any = None, causal: bool = False) -> Any:
        def split(part: str, value: Any) -> Any:
            return self.linear(f"{name}.{part}", value).unflatten(-1, (heads, -1)).transpose(-2, -3)

        seen = hidden if seen is None else seen
        found = functional.scaled_dot_product_attention(
            split("query", hidden), split("key", seen), split("value", seen), is_causal=causal
        )
        return self.linear(f"{name}.output", found.transpose(-2, -3).flatten(-2))


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


class Unet(ByHand):
    def __call__(self, latent: Any, time: Any, text: Any) -> Any:
        speeds = 10_000.0 ** (-torch.arange(16, dtype=torch.float64) / 16)
        angles = time * speeds.float()  # as a graph holds them
        time = self.linear("time.first", torch.cat([angles.cos(), angles.sin()], -1))
        self.time = functional.silu(self.linear("time.second", functional.silu(time)))
        self.text = text
        first = self.convolution("in", latent, padding=1)
        second = self._residual("down.0", first)
        third = self.convolution("down.halve", second, padding=1, stride=2)
        fourth = self._attending("down.1.attention", self._residual("down.1", third))
        hidden = self._attending("middle.attention", self._residual("middle.0", fourth))
        hidden = self._residual("middle.1", hidden)
        hidden = self._attending("up.0.attention", self._residual("up.0", torch.cat([hidden, fourth], 1)))
        hidden = self._residual("up.1", torch.cat([hidden, third], 1))
        hidden = self.convolution("up.double", functional.interpolate(hidden, scale_factor=2.0), padding=1)
        hidden = self._residual("up.2", torch.cat([hidden, second], 1))
        hidden = self._residual("up.3", torch.cat([hidden, first], 1))
        return self.convolution("out", functional.silu(self._group_norm("out.norm", hidden)), padding=1)

    def _group_norm(self, name: str, image: Any) -> Any:
        return functional.group_norm(image, 16, self.part(f"{name}.weight"), self.part(f"{name}.bias"), 1e-5)

    def _residual(self, name: str, image: Any) -> Any:
        hidden = functional.silu(self._group_norm(f"{name}.norm1", image))
        hidden = self.convolution(f"{name}.first", hidden, padding=1)
        hidden = hidden + self.linear(f"{name}.time", self.time)[:, :, None, None]
        hidden = functional.silu(self._group_norm(f"{name}.norm2", hidden))
        hidden = self.convolution(f"{name}.second", hidden, padding=1)
        beside = f"{name}.beside"
        return hidden + (self.convolution(beside, image) if self.part(f"{beside}.weight") is not None else image)

    def _attending(self, name: str, image: Any) -> Any:
        hidden = self.linear(f"{name}.in", self._group_norm(f"{name}.norm", image).flatten(2).transpose(1, 2))
        hidden = hidden + self.attention(f"{name}.self", self.layer_norm(f"{name}.norm1", hidden), 4)
        hidden = hidden + self.attention(f"{name}.text", self.layer_norm(f"{name}.norm2", hidden), 4, self.text)
        value, gate = self.linear(f"{name}.gated", self.layer_norm(f"{name}.norm3", hidden)).chunk(2, -1)
        hidden = hidden + self.linear(f"{name}.narrowed", value * functional.gelu(gate))
        return image + self.linear(f"{name}.out", hidden).transpose(1, 2).reshape(image.shape)


class Yolo(ByHand):
    """The layers of YOLOv8 as its published configuration lists them, with the names of the model here."""

    def __call__(self, image: Any) -> Any:
        counts = (1, 2, 2, 1)
        hidden, seen = self._unit("backbone.0", image, stride=2), []
        for number, count in enumerate(counts, start=1):
            hidden = self._unit(f"backbone.{number}.down", hidden, stride=2)
            hidden = self._stage(f"backbone.{number}", hidden, count, shortcut=True)
            seen.append(hidden)
        _, layer4, layer6, _ = seen
        parts = [self._unit("backbone.pool.in", hidden)]
        for _ in range(3):
            parts.append(functional.max_pool2d(parts[-1], 5, 1, 2))
        layer9 = self._unit("backbone.pool.out", torch.cat(parts, 1))
        layer12 = self._stage("neck.0", torch.cat([self._doubled(layer9), layer6], 1), 1)
        layer15 = self._stage("neck.1", torch.cat([self._doubled(layer12), layer4], 1), 1)
        down = self._unit("neck.2.down", layer15, stride=2)
        layer18 = self._stage("neck.2", torch.cat([down, layer12], 1), 1)
        down = self._unit("neck.3.down", layer18, stride=2)
        layer21 = self._stage("neck.3", torch.cat([down, layer9], 1), 1)
        grids = [self._head(f"head.{number}", each) for number, each in enumerate((layer15, layer18, layer21))]
        return torch.cat(grids, 2).transpose(1, 2)

    @staticmethod
    def _doubled(image: Any) -> Any:
        return functional.interpolate(image, scale_factor=2.0, mode="nearest")

    def _unit(self, name: str, image: Any, stride: int = 1) -> Any:
        weight = self.part(f"{name}.conv.weight")
        found = functional.conv2d(image, weight, None, stride, weight.shape[-1] // 2)
        mean, variance, scale, shift = (
            self.part(f"{name}.norm.{part}") for part in ("running_mean", "running_var", "weight", "bias")
        )
        return functional.silu(functional.batch_norm(found, mean, variance, scale, shift, eps=1e-3))

    def _stage(self, name: str, image: Any, count: int, shortcut: bool = False) -> Any:
        parts = list(self._unit(f"{name}.in", image).chunk(2, 1))
        for number in range(count):
            found = self._unit(f"{name}.{number}.second", self._unit(f"{name}.{number}.first", parts[-1]))
            parts.append(parts[-1] + found if shortcut else found)
        return self._unit(f"{name}.out", torch.cat(parts, 1))

    def _head(self, name: str, image: Any) -> Any:
        found = []
        for part in ("distances", "classes"):
            hidden = self._unit(f"{name}.{part}.1", self._unit(f"{name}.{part}.0", image))
            found.append(self.convolution(f"{name}.{part}.2", hidden))
        return torch.cat(found, 1).flatten(2)


def denoised(look: Unet, latent: Any, text: Any, kept: Sequence[float]) -> Any:
    """Take ten steps of DDIM, as its paper writes them, from time 901 down to 1."""
    for time in range(901, 0, -100):
        now, then = kept[time], kept[time - 100] if time > 100 else 1.0
        noise = look(latent, torch.full((len(latent), 1), float(time), dtype=torch.float64), text)
        clean = (latent - (1 - now) ** 0.5 * noise) / now**0.5
        latent = then**0.5 * clean + (1 - then) ** 0.5 * noise
    return latent
