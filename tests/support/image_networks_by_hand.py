"""Networks of images and volumes, written once more in plain PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from layers_by_hand import ByHand
from torch import nn
from torch.nn import functional

Tensors = Mapping[str, Any]


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


class SsdLite(ByHand):
    """MobileNetV2 as its paper's table has it, and SSDLite's grids and heads."""

    def __call__(self, image: Any) -> Any:
        hidden, number, grids = self._unit("stem", image, 2), 0, []
        for expansion, outward, count, stride in TABLE_OF_MOBILENET_V2:
            for place in range(count):
                hidden, wide = self._block(f"blocks.{number}", hidden, expansion, stride if place == 0 else 1)
                assert hidden.shape[1] == outward
                grids += [wide] if number == 13 else []
                number += 1
        grids.append(self._unit("last", hidden))
        for place in range(4):
            name = f"extra.{place}"
            each = self._unit(f"{name}.each", self._unit(f"{name}.narrow", grids[-1]), 2, depthwise=True)
            grids.append(self._unit(f"{name}.widen", each))
        return torch.cat([self._head(f"head.{place}", grid) for place, grid in enumerate(grids)], 1)

    def _unit(self, name: str, image: Any, stride: int = 1, depthwise: bool = False, linear: bool = False) -> Any:
        weight = self.part(f"{name}.conv.weight")
        groups = len(weight) if depthwise else 1
        found = functional.conv2d(image, weight, None, stride, weight.shape[-1] // 2, groups=groups)
        mean, variance, scale, shift = (
            self.part(f"{name}.norm.{part}") for part in ("running_mean", "running_var", "weight", "bias")
        )
        found = functional.batch_norm(found, mean, variance, scale, shift, eps=1e-3)
        return found if linear else functional.relu6(found)

    def _block(self, name: str, image: Any, expansion: int, stride: int) -> tuple[Any, Any]:
        wide = image if expansion == 1 else self._unit(f"{name}.expand", image)
        each = self._unit(f"{name}.each", wide, stride, depthwise=True)
        found = self._unit(f"{name}.project", each, linear=True)
        return found + image if found.shape == image.shape else found, wide

    def _head(self, name: str, grid: Any) -> Any:
        """In torchvision's order: rows, columns, boxes of a place, numbers of a box."""
        found = []
        for part, count in (("boxes", 4), ("classes", 91)):
            each = self.convolution(f"{name}.{part}.mixed", self._unit(f"{name}.{part}", grid, depthwise=True))
            found.append(each.unflatten(1, (6, count)).permute(0, 3, 4, 1, 2).flatten(1, 3))
        return torch.cat(found, -1)


class Unet3d(ByHand):
    """Modules of PyTorch in the order of a 3D U-Net's figure, as many levels as there are weights."""

    def __init__(self, weights: Mapping[str, Any]) -> None:
        super().__init__(weights)
        levels = sum(name.endswith("larger.weight") for name in weights)
        self.narrower = nn.ModuleList([self._pair("in", 1)])
        self.narrower.extend(self._pair(f"down.{number}", 2) for number in range(levels - 1))
        self.bottom = self._pair("bottom", 2)
        self.larger, self.wider = nn.ModuleList(), nn.ModuleList()
        for number in range(levels):
            inward, outward = self.part(f"up.{number}.larger.weight").shape[:2]
            self.larger.append(self._filled(nn.ConvTranspose3d(inward, outward, 2, 2), f"up.{number}.larger"))
            self.wider.append(self._pair(f"up.{number}", 1))
        self.out = self._filled(nn.Conv3d(self.part("in.first.norm.weight").shape[0], 3, 1), "out")

    def __call__(self, scan: Any) -> Any:
        seen = []
        for each in self.narrower:
            scan = each(scan)
            seen.append(scan)
        scan = self.bottom(scan)
        for larger, pair in zip(self.larger, self.wider, strict=True):
            scan = pair(torch.cat([larger(scan), seen.pop()], 1))
        return self.out(scan).flatten(2).transpose(1, 2)

    def parameters(self) -> int:
        modules = nn.ModuleList([self.narrower, self.bottom, self.larger, self.wider, self.out])
        return sum(each.numel() for each in modules.parameters())

    def _pair(self, name: str, stride: int) -> Any:
        layers: list[Any] = []
        for part in ("first", "second"):
            own = f"{name}.{part}"
            outward, inward = self.part(f"{own}.conv.weight").shape[:2]
            convolution = nn.Conv3d(inward, outward, 3, stride if part == "first" else 1, 1, bias=False)
            norm = nn.InstanceNorm3d(outward, affine=True)
            layers += [self._filled(convolution, f"{own}.conv"), self._filled(norm, f"{own}.norm"), nn.ReLU()]
        return nn.Sequential(*layers)

    def _filled(self, module: Any, name: str) -> Any:
        module.weight.data = self.part(f"{name}.weight")
        if module.bias is not None:
            module.bias.data = self.part(f"{name}.bias")
        return module


TABLE_OF_MOBILENET_V2 = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip


def corners_of_ssd(predictions: Any) -> Any:
    """Make corners in pixels as torchvision's box coder does, of boxes that are listed one by one."""
    listed = []
    scales = [0.2, 0.35, 0.5, 0.65, 0.8, 0.95, 1.0]
    for number, side in enumerate((20, 10, 5, 3, 2, 1)):
        own, next_one = scales[number : number + 2]
        for row in range(side):
            for column in range(side):
                sides = [(own, own), ((own * next_one) ** 0.5, (own * next_one) ** 0.5)]
                for shape in (2.0, 3.0):
                    sides += [(own * shape**0.5, own / shape**0.5), (own / shape**0.5, own * shape**0.5)]
                middle = (column + 0.5) / side, (row + 0.5) / side
                listed += [(*middle, min(width, 1.0), min(height, 1.0)) for width, height in sides]
    boxes = 320 * torch.tensor(listed, dtype=torch.float64)
    x, y, wide, high = (predictions[..., each].double() / by for each, by in zip(range(4), (10, 10, 5, 5), strict=True))
    middle = torch.stack([x * boxes[:, 2] + boxes[:, 0], y * boxes[:, 3] + boxes[:, 1]], -1)
    half = torch.stack([wide.exp() * boxes[:, 2], high.exp() * boxes[:, 3]], -1) / 2
    return torch.cat([middle - half, middle + half], -1).clamp(0, 320)


def denoised(look: Unet, latent: Any, text: Any, kept: Sequence[float]) -> Any:
    """Take ten steps of DDIM, as its paper writes them, from time 901 down to 1."""
    for time in range(901, 0, -100):
        now, then = kept[time], kept[time - 100] if time > 100 else 1.0
        noise = look(latent, torch.full((len(latent), 1), float(time), dtype=torch.float64), text)
        clean = (latent - (1 - now) ** 0.5 * noise) / now**0.5
        latent = then**0.5 * clean + (1 - then) ** 0.5 * noise
    return latent
