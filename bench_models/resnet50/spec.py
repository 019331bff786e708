"""ResNet-50 v1.5 under the names of PyTorch's published weights, so that those can be loaded too."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fairlap.bench_models.convolution.units import Unit, classifier
from fairlap.models.spec import TOLERANCES, Constant, Spec, Tensor, Tolerance, Uniform, Weight

IMAGE = 224
CLASSES = 1000
FREE_SIZES = {"image": (32, 2048)}  # it averages over all positions
FEATURES = 2048
STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))  # width, blocks, stride of the first block
EXPANSION = 4

# What a block adds to its input is kept small: sixteen additions of full size would make activations grow a
# thousandfold.
CLOSING_SCALE = Uniform(0.1, 0.5)


@dataclass(frozen=True)
class Block:
    """``narrow``, ``spatial`` and ``widen`` in turn, added to the input or to what ``shortcut`` makes of it."""

    name: str
    narrow: Unit
    spatial: Unit
    widen: Unit
    shortcut: Unit | None

    def units(self) -> tuple[Unit, ...]:
        return tuple(unit for unit in (self.narrow, self.spatial, self.widen, self.shortcut) if unit)


def _block(name: str, inward: int, width: int, stride: int, image: int) -> Block:
    outward = EXPANSION * width
    narrow = Unit(f"{name}.conv1", f"{name}.bn1", inward, width, 1, image)
    spatial = Unit(f"{name}.conv2", f"{name}.bn2", width, width, 3, image, stride=stride)
    widen = Unit(f"{name}.conv3", f"{name}.bn3", width, outward, 1, spatial.image_after, scale=CLOSING_SCALE)
    shortcut = None
    if stride != 1 or inward != outward:
        names = (f"{name}.downsample.0", f"{name}.downsample.1")
        # It stands in for the input, so it keeps the power of what goes in and makes up for no ReLU.
        shortcut = Unit(*names, inward, outward, 1, image, stride=stride, rectified=False)
    return Block(name, narrow, spatial, widen, shortcut)


def _blocks() -> tuple[Block, ...]:
    blocks: list[Block] = []
    inward, image = STEM.outward, STEM.image_after // 2  # halved by the pooling
    for stage, (width, count, stride) in enumerate(STAGES, start=1):
        for number in range(count):
            block = _block(f"layer{stage}.{number}", inward, width, stride if number == 0 else 1, image)
            blocks.append(block)
            inward, image = block.widen.outward, block.widen.image_after
    return tuple(blocks)


STEM = Unit("conv1", "bn1", 3, 64, 7, IMAGE, stride=2, rectified=False)
BLOCKS = _blocks()


def units() -> tuple[Unit, ...]:
    return (STEM, *(unit for block in BLOCKS for unit in block.units()))


def macs_per_item() -> int:
    return sum(unit.macs for unit in units()) + FEATURES * CLASSES


def _weights() -> tuple[Weight, ...]:
    return (*(weight for unit in units() for weight in unit.weights()), *classifier("fc", FEATURES, CLASSES))


# Fifty layers of bfloat16 leave an error of 0.04 in the worst of a thousand logits (six seeds, PyTorch and JAX), which
# is more than the usual tolerance grants. The cosine is held tighter in return: honest work stays above 0.99997, and
# the answer to another image is at most 0.9996.
_BF16 = Tolerance(cosine=0.9999, absolute=8e-2, relative=1e-1)

SPEC = Spec(
    name="resnet50",
    task="image classification",
    inputs=(Tensor("image", ("batch", 3, IMAGE, IMAGE)),),
    outputs=(Tensor("logits", ("batch", CLASSES), Constant(0.0)),),
    weights=_weights(),
    parameters=25_557_032,
    gmacs_per_item=4.09,
    published="torchvision, ResNet50_Weights (num_params, GFLOPS)",
    loss="cross_entropy",
    tolerances={**TOLERANCES, "bf16": _BF16},
)


def with_sizes(image: int) -> Spec:
    return replace(SPEC, inputs=(Tensor("image", ("batch", 3, image, image)),), gmacs_per_item=None)
