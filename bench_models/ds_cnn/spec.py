"""The network of MLPerf Tiny's keyword spotting: a convolution, four separable ones, an average over all places."""

from __future__ import annotations

from fairlap.bench_models.graphs.images import convolution, means_of_channels, normalised
from fairlap.bench_models.graphs.net import Net, Value
from fairlap.models.spec import BATCH, Spec, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.graphs"
FRAMES, COEFFICIENTS, WORDS = 49, 10, 12
CHANNELS, BLOCKS = 64, 4


def _rectified(net: Net, name: str, image: Value) -> Value:
    return net.elementwise("Relu", normalised(net, name, image))


def _net() -> Net:
    net = Net(Tensor("speech", (BATCH, 1, FRAMES, COEFFICIENTS)))
    hidden = convolution(net, "stem", net.input("speech"), CHANNELS, (10, 4), stride=2, rectified=False)
    hidden = _rectified(net, "norm", hidden)
    for number in range(BLOCKS):
        name = f"blocks.{number}"
        hidden = convolution(net, f"{name}.each", hidden, CHANNELS, (3, 3), groups=CHANNELS)
        hidden = convolution(net, f"{name}.mixed", _rectified(net, f"{name}.norm1", hidden), CHANNELS, (1, 1))
        hidden = _rectified(net, f"{name}.norm2", hidden)
    net.output(net.linear("head", means_of_channels(net, hidden), WORDS), "logits")
    return net


NET = _net()
SPEC = Spec(
    name="ds_cnn",
    task="keyword spotting",
    inputs=NET.inputs,
    outputs=NET.outputs,
    weights=tuple(NET.weights),
    parameters=23_756,
    gmacs_per_item=NET.macs / 1e9,
    published="MLPerf Tiny, keyword spotting: 24,908 with 1,152 moving averages; GMACs by arithmetic",
    loss="cross_entropy",
)
