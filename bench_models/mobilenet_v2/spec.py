"""MobileNetV2 of width 1.0 under the names of PyTorch's published weights, so that those can be loaded too."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fairlap.bench_models.convolution.units import Unit, classifier
from fairlap.models.spec import TOLERANCES, Constant, Spec, Tensor, Tolerance, Weight

IMAGE = 224
CLASSES = 1000
FREE_SIZES = {"image": (32, 2048)}  # it averages over all positions
FEATURES = 1280
STAGES = (  # expansion, channels, blocks, stride of the first block
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


@dataclass(frozen=True)
class Block:
    """``expand`` and ``depthwise`` end in a ReLU6, ``project`` does not."""

    name: str
    expand: Unit | None
    depthwise: Unit
    project: Unit

    @property
    def residual(self) -> bool:
        inward = self.expand.inward if self.expand else self.depthwise.inward
        return self.depthwise.stride == 1 and inward == self.project.outward

    def units(self) -> tuple[Unit, ...]:
        return tuple(unit for unit in (self.expand, self.depthwise, self.project) if unit)


def _block(name: str, inward: int, outward: int, expansion: int, stride: int, image: int) -> Block:
    hidden = inward * expansion
    expand, at = None, 0
    if expansion != 1:
        expand, at = Unit(f"{name}.conv.0.0", f"{name}.conv.0.1", inward, hidden, 1, image, rectified=False), 1
    names = (f"{name}.conv.{at}.0", f"{name}.conv.{at}.1")
    depthwise = Unit(*names, hidden, hidden, 3, image, stride=stride, groups=hidden)
    project = Unit(f"{name}.conv.{at + 1}", f"{name}.conv.{at + 2}", hidden, outward, 1, depthwise.image_after)
    return Block(name, expand, depthwise, project)


def _blocks() -> tuple[Block, ...]:
    blocks: list[Block] = []
    inward, image = STEM.outward, STEM.image_after
    for expansion, outward, count, stride in STAGES:
        for number in range(count):
            name = f"features.{len(blocks) + 1}"
            blocks.append(_block(name, inward, outward, expansion, stride if number == 0 else 1, image))
            inward, image = outward, blocks[-1].project.image_after
    return tuple(blocks)


STEM = Unit("features.0.0", "features.0.1", 3, 32, 3, IMAGE, stride=2, rectified=False)
BLOCKS = _blocks()
LAST = Unit(
    f"features.{len(BLOCKS) + 1}.0",
    f"features.{len(BLOCKS) + 1}.1",
    BLOCKS[-1].project.outward,
    FEATURES,
    1,
    BLOCKS[-1].project.image_after,
    rectified=False,
)


def units() -> tuple[Unit, ...]:
    return (STEM, *(unit for block in BLOCKS for unit in block.units()), LAST)


def macs_per_item() -> int:
    return sum(unit.macs for unit in units()) + FEATURES * CLASSES


def _weights() -> tuple[Weight, ...]:
    layers = (weight for unit in units() for weight in unit.weights())
    return (*layers, *classifier("classifier.1", FEATURES, CLASSES))


# Fifty layers of bfloat16 leave an error of 0.07 in the worst of a thousand logits (six seeds, PyTorch and JAX), which
# is more than the usual tolerance grants. The cosine is held tighter in return: honest work stays above 0.9998, and
# the answer to another image is at most 0.9972.
_BF16 = Tolerance(cosine=0.9995, absolute=1.3e-1, relative=1e-1)

SPEC = Spec(
    name="mobilenet_v2",
    task="image classification",
    inputs=(Tensor("image", ("batch", 3, IMAGE, IMAGE)),),
    outputs=(Tensor("logits", ("batch", CLASSES), Constant(0.0)),),
    weights=_weights(),
    parameters=3_504_872,
    gmacs_per_item=0.30,
    published="torchvision, MobileNet_V2_Weights (num_params, GFLOPS)",
    loss="cross_entropy",
    tolerances={**TOLERANCES, "bf16": _BF16},
)


def with_sizes(image: int) -> Spec:
    return replace(SPEC, inputs=(Tensor("image", ("batch", 3, image, image)),), gmacs_per_item=None)
