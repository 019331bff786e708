"""The network of MLPerf Tiny's keyword spotting: a convolution, four separable ones, an average over all places."""

from __future__ import annotations

from fairlap.bench_models.graphs.images import WHOLE, activated, convolution, means_of_channels, separable
from fairlap.bench_models.graphs.net import Net
from fairlap.models.spec import BATCH, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.graphs"
FRAMES, COEFFICIENTS, WORDS = 49, 10, 12
CHANNELS, BLOCKS = 64, 4


def _net() -> Net:
    net = Net(Tensor("speech", (BATCH, 1, FRAMES, COEFFICIENTS)))
    hidden = convolution(net, "stem", net.input("speech"), CHANNELS, (10, 4), stride=2, power=WHOLE)
    hidden = activated(net, "norm", hidden)
    for number in range(BLOCKS):
        hidden = separable(net, f"blocks.{number}", hidden, CHANNELS)
    net.output(net.linear("head", means_of_channels(net, hidden), WORDS), "logits")
    return net


NET = _net()
SPEC = NET.spec(
    "ds_cnn",
    task="keyword spotting",
    published="MLPerf Tiny, keyword spotting: 24,908 with 1,152 moving averages; GMACs by arithmetic",
    parameters=23_756,
    loss="cross_entropy",
)
