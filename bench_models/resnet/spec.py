"""A residual network v1.5 under the names of PyTorch's published weights, so that those can be loaded too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from fairlap.bench_models.convolution.units import Unit, classifier
from fairlap.models.names import sizes_of_family
from fairlap.models.spec import TOLERANCES, Constant, Spec, Tensor, Tolerance, Uniform

IMAGE = 224
CLASSES = 1000
STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))  # width, and stride of the first block
EXPANSION = 4  # of blocks of three convolutions

# What a block adds to its input is kept small: sixteen additions of full size would make activations grow a
# thousandfold.
CLOSING_SCALE = Uniform(0.1, 0.5)

# Fifty layers of bfloat16 leave an error of 0.04 in the worst of a thousand logits (six seeds, PyTorch and JAX), which
# is more than the usual tolerance grants. The cosine is held tighter in return: honest work stays above 0.99997, and
# the answer to another image is at most 0.9996.
_BF16 = Tolerance(cosine=0.9999, absolute=8e-2, relative=1e-1)

STEM = Unit("conv1", "bn1", 3, 64, 7, IMAGE, stride=2, rectified=False)


@dataclass(frozen=True)
class Block:
    """The units of ``path`` in turn, added to the input or to what ``shortcut`` makes of it."""

    name: str
    path: tuple[Unit, ...]
    shortcut: Unit | None

    @property
    def units(self) -> tuple[Unit, ...]:
        return self.path if self.shortcut is None else (*self.path, self.shortcut)


@dataclass(frozen=True, eq=False)
class ResNet:
    """One size. Capitals name what the module ``spec`` of a single model has."""

    SPEC: Spec
    stages: tuple[tuple[Block, ...], ...]
    FREE_SIZES: Mapping[str, tuple[int, int]]

    @property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(block for stage in self.stages for block in stage)

    @property
    def features(self) -> int:
        return self.blocks[-1].path[-1].outward

    def macs_per_item(self) -> int:
        return sum(unit.macs for unit in units_of(self.blocks)) + self.features * CLASSES

    def with_sizes(self, image: int) -> Spec:
        return replace(self.SPEC, inputs=(Tensor("image", ("batch", 3, image, image)),), gmacs_per_item=None)


@cache
def in_size(size: str) -> ResNet:
    own = sizes_of_family("resnet")[size]
    stages = _stages(own["convolutions"], own["blocks"])
    blocks = [block for stage in stages for block in stage]
    layers = [weight for unit in units_of(blocks) for weight in unit.weights()]
    spec = Spec(
        name=f"resnet:{size}",
        task="image classification",
        inputs=(Tensor("image", ("batch", 3, IMAGE, IMAGE)),),
        outputs=(Tensor("logits", ("batch", CLASSES), Constant(0.0)),),
        weights=(*layers, *classifier("fc", blocks[-1].path[-1].outward, CLASSES)),
        parameters=own["parameters"],
        gmacs_per_item=own["gmacs_per_item"],
        published=f"torchvision, ResNet{size}_Weights (num_params, GFLOPS)",
        loss="cross_entropy",
        tolerances={**TOLERANCES, "bf16": _BF16},
    )
    return ResNet(spec, stages, {"image": (32, 2048)})  # it averages over all positions


def units_of(blocks: Any) -> tuple[Unit, ...]:
    return (STEM, *(unit for block in blocks for unit in block.units))


def _stages(convolutions: int, counts: list[int]) -> tuple[tuple[Block, ...], ...]:
    stages: list[tuple[Block, ...]] = []
    inward, image = STEM.outward, STEM.image_after // 2  # halved by the pooling
    for number, ((width, stride), count) in enumerate(zip(STAGES, counts, strict=True), start=1):
        blocks: list[Block] = []
        for place in range(count):
            block = _block(f"layer{number}.{place}", convolutions, inward, width, 1 if place else stride, image)
            blocks.append(block)
            inward, image = block.path[-1].outward, block.path[-1].image_after
        stages.append(tuple(blocks))
    return tuple(stages)


def _block(name: str, convolutions: int, inward: int, width: int, stride: int, image: int) -> Block:
    """Of three convolutions the first narrows and the last widens, by 1x1; of two both are 3x3."""
    if convolutions == 2:
        sizes = [(inward, width, 3, stride), (width, width, 3, 1)]
    else:
        sizes = [(inward, width, 1, 1), (width, width, 3, stride), (width, EXPANSION * width, 1, 1)]
    path: list[Unit] = []
    seen = image
    for number, (taken, given, kernel, step) in enumerate(sizes, start=1):
        unit = Unit(f"{name}.conv{number}", f"{name}.bn{number}", taken, given, kernel, seen, stride=step)
        path.append(unit)
        seen = unit.image_after
    path[-1] = replace(path[-1], scale=CLOSING_SCALE)
    outward = path[-1].outward
    shortcut = None
    if stride != 1 or inward != outward:
        names = (f"{name}.downsample.0", f"{name}.downsample.1")
        # It stands in for the input, so it keeps the power of what goes in and makes up for no ReLU.
        shortcut = Unit(*names, inward, outward, 1, image, stride=stride, rectified=False)
    return Block(name, tuple(path), shortcut)
