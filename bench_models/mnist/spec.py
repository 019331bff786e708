"""A residual net of three blocks for images of 28 by 28 pixels, normalised by the batch, as ResNet-18 is in large."""

from __future__ import annotations

from dataclasses import dataclass

from fairlap.bench_models.convolution.units import Unit, classifier
from fairlap.models.spec import LEARNS, Constant, Spec, Tensor, Weight
from fairlap.request.fields.training import Schedule, Sgd, Training

IMAGE = 28
CLASSES = 10
STAGES = ((16, 1), (32, 2), (64, 2))  # width, stride
FEATURES = STAGES[-1][0]


@dataclass(frozen=True)
class Block:
    """``first`` and ``second`` in turn, added to the input or to what ``shortcut`` makes of it."""

    name: str
    first: Unit
    second: Unit
    shortcut: Unit | None

    def units(self) -> tuple[Unit, ...]:
        return tuple(unit for unit in (self.first, self.second, self.shortcut) if unit)


def _block(name: str, inward: int, width: int, stride: int, image: int) -> Block:
    first = Unit(f"{name}.conv1", f"{name}.bn1", inward, width, 3, image, stride=stride)
    second = Unit(f"{name}.conv2", f"{name}.bn2", width, width, 3, first.image_after)
    shortcut = None
    if stride != 1 or inward != width:
        names = (f"{name}.downsample.0", f"{name}.downsample.1")
        shortcut = Unit(*names, inward, width, 1, image, stride=stride, rectified=False)
    return Block(name, first, second, shortcut)


def _blocks() -> tuple[Block, ...]:
    blocks: list[Block] = []
    inward, image = STEM.outward, STEM.image_after
    for number, (width, stride) in enumerate(STAGES, start=1):
        blocks.append(_block(f"layer{number}", inward, width, stride, image))
        inward, image = width, blocks[-1].second.image_after
    return tuple(blocks)


STEM = Unit("conv1", "bn1", 1, STAGES[0][0], 3, IMAGE, stride=2, rectified=False)
BLOCKS = _blocks()


def units() -> tuple[Unit, ...]:
    return (STEM, *(unit for block in BLOCKS for unit in block.units()))


def _weights() -> tuple[Weight, ...]:
    return (*(weight for unit in units() for weight in unit.weights()), *classifier("fc", FEATURES, CLASSES))


SPEC = Spec(
    name="mnist",
    task="digit recognition",
    inputs=(Tensor("image", ("batch", 1, IMAGE, IMAGE)),),
    outputs=(Tensor("logits", ("batch", CLASSES), Constant(0.0)),),
    weights=_weights(),
    parameters=77_754,
    gmacs_per_item=0.002552,
    published="arithmetic: the sizes of its layers",
    loss="cross_entropy",
    modes=LEARNS,
    training=Training(Sgd(lr=0.05, momentum=0.9), Schedule(warmup=60)),
    default_batch=32,
    data_set="mnist",
)
