"""A temporal convolutional network: 96 steps of seven series, and a forecast of the next 24.

Convolutions see no later step, and skip more steps in each block: 1, 2, 4, 8 and 16.
"""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.graphs.images import RECTIFIED, WHOLE
from fairlap.bench_models.graphs.net import Net, Value
from fairlap.models.spec import BATCH, Normal, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.graphs"
SERIES, STEPS, AHEAD = 7, 96, 24
CHANNELS, KERNEL, DILATIONS = 64, 3, (1, 2, 4, 8, 16)
MODEST = 0.5  # power of what a block adds to the power that there is


def _convolution(net: Net, name: str, value: Value, kernel: int, dilation: int, power: float) -> Value:
    inward, steps = value.shape
    weight = net.weight(f"{name}.weight", (CHANNELS, inward, kernel), Normal((power / (inward * kernel)) ** 0.5))
    bias = net.weight(f"{name}.bias", (CHANNELS,), Normal(0.1))
    net.macs += CHANNELS * steps * inward * kernel
    sizes: dict[str, Any] = {"kernel_shape": [kernel], "dilations": [dilation], "pads": [(kernel - 1) * dilation, 0]}
    return net.add("Conv", value, weight, bias, shape=(CHANNELS, steps), **sizes)


def _block(net: Net, name: str, value: Value, dilation: int) -> Value:
    hidden = _convolution(net, f"{name}.first", value, KERNEL, dilation, RECTIFIED)
    hidden = net.elementwise("Relu", hidden)
    hidden = _convolution(net, f"{name}.second", hidden, KERNEL, dilation, MODEST * RECTIFIED)
    if value.shape[0] != CHANNELS:
        value = _convolution(net, f"{name}.beside", value, 1, 1, WHOLE)
    return net.elementwise("Relu", net.sum(value, hidden))


def _net() -> Net:
    net = Net(Tensor("history", (BATCH, STEPS, SERIES)))
    hidden = net.transpose(net.input("history"), 2, 1)
    for number, dilation in enumerate(DILATIONS):
        hidden = _block(net, f"blocks.{number}", hidden, dilation)
    last = net.add("Gather", hidden, net.constant((), lambda: STEPS - 1, "int64"), shape=(CHANNELS,), axis=2)
    net.output(net.reshape(net.linear("head", last, AHEAD * SERIES), AHEAD, SERIES), "forecast")
    return net


NET = _net()
SPEC = NET.spec(
    "tcn",
    task="forecasting",
    published="temporal convolutional networks (layers); arithmetic",
    parameters=124_008,
    loss="square_error",
    default_batch=8,
)
