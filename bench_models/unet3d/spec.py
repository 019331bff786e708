"""A 3D U-Net reads a part of a scan, and scores three classes for each voxel: none, kidney or tumour.

Convolutions with a stride of two make it smaller, transposed ones larger again, and what was there before is joined.
Every other convolution is normalised over the voxels of its own item. It learns by cross-entropy alone; MLPerf's loss
is half of that and half of Dice.
"""

from __future__ import annotations

import math
from functools import cache

from fairlap.bench_models.graphs.images import RECTIFIED, WHOLE, convolution, joined
from fairlap.bench_models.graphs.net import Net, Sized, Value
from fairlap.models.names import sizes_of_family
from fairlap.models.spec import BATCH, LEARNS, Normal, Tensor, Uniform

IMPLEMENTED_IN = "fairlap.bench_models.graphs"
CLASSES = 3
EPSILON = 1e-5
_MOST_LEARNT = 64  # voxels a side: above, the reference's gradients take tens of gibibytes


@cache
def in_size(size: str) -> Sized:
    own = sizes_of_family("unet3d")[size]
    net = _net(own["side"], own["widths"])
    spec = net.spec(
        f"unet3d:{size}",
        task="segmentation of scans",
        published=f"MLCommons, 3D U-Net for KiTS19 (layers{', widths' if size == 'base' else ''}); parameters and "
        f"GMACs by arithmetic, at {own['side']} voxels a side",
        parameters=own["parameters"],
        loss="cross_entropy",
        modes=LEARNS if own["side"] <= _MOST_LEARNT else ("infer",),
    )
    return Sized(net, spec)


def _unit(net: Net, name: str, volume: Value, outward: int, *, stride: int = 1, power: float = RECTIFIED) -> Value:
    edges = (3, 3, 3)
    found = convolution(net, f"{name}.conv", volume, outward, edges, stride=stride, power=power, bias=False,
                        symmetric=True)  # fmt: skip
    scale = net.weight(f"{name}.norm.weight", (outward,), Uniform(0.75, 1.25))
    shift = net.weight(f"{name}.norm.bias", (outward,), Normal(0.1))
    normed = net.add("InstanceNormalization", found, scale, shift, shape=found.shape, epsilon=EPSILON)
    return net.elementwise("Relu", normed)


def _pair(net: Net, name: str, volume: Value, outward: int, *, stride: int = 1, power: float = RECTIFIED) -> Value:
    first = _unit(net, f"{name}.first", volume, outward, stride=stride, power=power)
    return _unit(net, f"{name}.second", first, outward)


def _enlarged(net: Net, name: str, volume: Value, outward: int) -> Value:
    """Make each voxel eight."""
    inward, *sizes = volume.shape
    edges = [2, 2, 2]
    weight = net.weight(f"{name}.weight", (inward, outward, *edges), Normal((RECTIFIED / inward) ** 0.5))
    bias = net.weight(f"{name}.bias", (outward,), Normal(0.02))
    shape = (outward, *(2 * size for size in sizes))
    net.macs += math.prod(shape) * inward
    return net.add("ConvTranspose", volume, weight, bias, shape=shape, kernel_shape=edges, strides=edges)


def _net(side: int, widths: list[int]) -> Net:
    net = Net(Tensor("scan", (BATCH, 1, side, side, side)))
    hidden = _pair(net, "in", net.input("scan"), widths[0], power=WHOLE)
    seen = [hidden]
    for number, width in enumerate(widths[1:]):
        hidden = _pair(net, f"down.{number}", hidden, width, stride=2)
        seen.append(hidden)
    hidden = _pair(net, "bottom", hidden, widths[-1], stride=2)
    for number, before in enumerate(reversed(seen)):
        name, width = f"up.{number}", before.shape[0]
        hidden = _pair(net, name, joined(net, _enlarged(net, f"{name}.larger", hidden, width), before), width)
    scores = convolution(net, "out", hidden, CLASSES, (1, 1, 1))
    net.output(net.transpose(net.reshape(scores, CLASSES, side**3), 2, 1), "scores")
    return net
