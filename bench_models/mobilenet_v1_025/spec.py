"""MobileNetV1 of width 0.25, as MLPerf Tiny's visual wake words has it: thirteen separable convolutions."""

from __future__ import annotations

from fairlap.bench_models.graphs.images import WHOLE, activated, convolution, means_of_channels, separable
from fairlap.bench_models.graphs.net import Net
from fairlap.models.spec import BATCH, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.graphs"
IMAGE, CLASSES, STEM = 96, 2, 8
BLOCKS = ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2), (256, 1))


def _net() -> Net:
    net = Net(Tensor("image", (BATCH, 3, IMAGE, IMAGE)))
    hidden = convolution(net, "stem", net.input("image"), STEM, (3, 3), stride=2, power=WHOLE)
    hidden = activated(net, "norm", hidden)
    for number, (channels, stride) in enumerate(BLOCKS):
        hidden = separable(net, f"blocks.{number}", hidden, channels, stride=stride)
    net.output(net.linear("head", means_of_channels(net, hidden), CLASSES), "logits")
    return net


NET = _net()
SPEC = NET.spec(
    "mobilenet_v1_025",
    task="visual wake words",
    published="MLPerf Tiny, visual wake words: 221,794 with 5,472 moving averages; GMACs by arithmetic",
    parameters=216_322,
    loss="cross_entropy",
)
