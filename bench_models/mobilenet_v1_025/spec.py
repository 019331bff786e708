"""MobileNetV1 of width 0.25, as MLPerf Tiny's visual wake words has it: thirteen separable convolutions."""

from __future__ import annotations

from fairlap.bench_models.graphs.images import convolution, means_of_channels, normalised
from fairlap.bench_models.graphs.net import Net, Value
from fairlap.models.spec import BATCH, Spec, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.graphs"
IMAGE, CLASSES, STEM = 96, 2, 8
BLOCKS = ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2), (256, 1))


def _rectified(net: Net, name: str, image: Value) -> Value:
    return net.elementwise("Relu", normalised(net, name, image))


def _net() -> Net:
    net = Net(Tensor("image", (BATCH, 3, IMAGE, IMAGE)))
    hidden = convolution(net, "stem", net.input("image"), STEM, (3, 3), stride=2, rectified=False)
    hidden = _rectified(net, "norm", hidden)
    for number, (channels, stride) in enumerate(BLOCKS):
        name, inward = f"blocks.{number}", hidden.shape[0]
        hidden = convolution(net, f"{name}.each", hidden, inward, (3, 3), stride=stride, groups=inward)
        hidden = convolution(net, f"{name}.mixed", _rectified(net, f"{name}.norm1", hidden), channels, (1, 1))
        hidden = _rectified(net, f"{name}.norm2", hidden)
    net.output(net.linear("head", means_of_channels(net, hidden), CLASSES), "logits")
    return net


NET = _net()
SPEC = Spec(
    name="mobilenet_v1_025",
    task="visual wake words",
    inputs=NET.inputs,
    outputs=NET.outputs,
    weights=tuple(NET.weights),
    parameters=216_322,
    gmacs_per_item=NET.macs / 1e9,
    published="MLPerf Tiny, visual wake words: 221,794 with 5,472 moving averages; GMACs by arithmetic",
    loss="cross_entropy",
)
