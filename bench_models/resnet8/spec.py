"""The residual network of MLPerf Tiny's image classification: three stacks of two convolutions."""

from __future__ import annotations

from fairlap.bench_models.graphs.images import WHOLE, activated, convolution, means_of_channels, normalised
from fairlap.bench_models.graphs.net import Net, Value
from fairlap.models.spec import BATCH, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.graphs"
IMAGE, CLASSES = 32, 10
STACKS = ((16, 1), (32, 2), (64, 2))  # channels, and the stride of the first convolution


def _stack(net: Net, name: str, image: Value, channels: int, stride: int) -> Value:
    hidden = convolution(net, f"{name}.first", image, channels, (3, 3), stride=stride)
    hidden = activated(net, f"{name}.norm1", hidden)
    hidden = normalised(net, f"{name}.norm2", convolution(net, f"{name}.second", hidden, channels, (3, 3)))
    beside = image if stride == 1 else convolution(net, f"{name}.beside", image, channels, (1, 1), stride=stride)
    return net.elementwise("Relu", net.sum(beside, hidden))


def _net() -> Net:
    net = Net(Tensor("image", (BATCH, 3, IMAGE, IMAGE)))
    hidden = convolution(net, "stem", net.input("image"), STACKS[0][0], (3, 3), power=WHOLE)
    hidden = activated(net, "norm", hidden)
    for number, (channels, stride) in enumerate(STACKS):
        hidden = _stack(net, f"stacks.{number}", hidden, channels, stride)
    net.output(net.linear("head", means_of_channels(net, hidden), CLASSES), "logits")
    return net


NET = _net()
SPEC = NET.spec(
    "resnet8",
    task="image classification",
    published="MLPerf Tiny, image classification: 78,666 with 480 moving averages; GMACs by arithmetic",
    parameters=78_186,
    loss="cross_entropy",
)
