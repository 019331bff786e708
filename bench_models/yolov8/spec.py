"""A detector in the shape of YOLOv8: three grids of places, each with the distances to four sides and 80 classes.

The distances are shares of sixteen bins, which ``stages`` turns into boxes.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from fairlap.bench_models.graphs.images import SWISHED, WHOLE, convolution, doubled, joined, normalised, swish
from fairlap.bench_models.graphs.net import Net, Sized, Value
from fairlap.models.names import sizes_of_family
from fairlap.models.spec import BATCH, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.graphs"
IMAGE, CLASSES, BINS = 320, 80, 16
STRIDES = (8, 16, 32)
PREDICTED = 4 * BINS + CLASSES


@cache
def in_size(size: str) -> Sized:
    own = sizes_of_family("yolov8")[size]
    channels = tuple(round(own["width"] * each) for each in (64, 128, 256, 512, 1024))
    few, many = (max(1, round(own["depth"] * each)) for each in (3, 6))
    net = _net(channels, few, many)
    spec = net.spec(
        f"yolov8:{size}",
        task="object detection",
        published=f"Ultralytics, YOLOv8{size} (parameters less 16 constants); GMACs by arithmetic, at 320 pixels",
        parameters=own["parameters"],
        loss="square_error",
    )
    return Sized(net, spec)


def _unit(
    net: Net, name: str, image: Value, outward: int, kernel: int = 1, *, stride: int = 1, power: float = SWISHED
) -> Value:
    edges = (kernel, kernel)
    found = convolution(
        net, f"{name}.conv", image, outward, edges, stride=stride, power=power, bias=False, symmetric=True
    )
    return swish(net, normalised(net, f"{name}.norm", found))


def _stage(net: Net, name: str, image: Value, outward: int, count: int, *, shortcut: bool) -> Value:
    """Pass half of the channels through some pairs of convolutions, and mix what comes out of every one."""
    half = outward // 2
    both = _unit(net, f"{name}.in", image, 2 * half)
    parts = net.add_split("Split", both, shapes=[(half, *both.shape[1:])] * 2, axis=1, num_outputs=2)
    for number in range(count):
        first = _unit(net, f"{name}.{number}.first", parts[-1], half, 3)
        # What is added has a quarter of the power of what is there.
        found = _unit(net, f"{name}.{number}.second", first, half, 3, power=SWISHED / 4 if shortcut else SWISHED)
        parts.append(net.sum(parts[-1], found) if shortcut else found)
    return _unit(net, f"{name}.out", joined(net, *parts), outward)


def _pooled(net: Net, name: str, image: Value) -> Value:
    parts = [_unit(net, f"{name}.in", image, image.shape[0] // 2)]
    for _ in range(3):
        sizes: dict[str, Any] = {"kernel_shape": [5, 5], "strides": [1, 1], "pads": [2, 2, 2, 2]}
        parts.append(net.add("MaxPool", parts[-1], shape=parts[0].shape, **sizes))
    return _unit(net, f"{name}.out", joined(net, *parts), image.shape[0])


def _predicted(net: Net, name: str, image: Value, widths: tuple[int, int]) -> Value:
    """Give every place its distances and classes, in this order."""
    found = []
    for part, width, count in zip(("distances", "classes"), widths, (4 * BINS, CLASSES), strict=True):
        hidden = _unit(net, f"{name}.{part}.0", image, width, 3)
        hidden = _unit(net, f"{name}.{part}.1", hidden, width, 3)
        found.append(convolution(net, f"{name}.{part}.2", hidden, count, (1, 1), power=SWISHED))
    places = image.shape[1] * image.shape[2]
    return net.transpose(net.reshape(joined(net, *found), PREDICTED, places), 2, 1)


def _net(channels: tuple[int, ...], few: int, many: int) -> Net:
    net = Net(Tensor("image", (BATCH, 3, IMAGE, IMAGE)))
    stem, *wider = channels
    hidden = _unit(net, "backbone.0", net.input("image"), stem, 3, stride=2, power=WHOLE)
    seen: list[Value] = []
    for number, (width, count) in enumerate(zip(wider, (few, many, many, few), strict=True), start=1):
        hidden = _unit(net, f"backbone.{number}.down", hidden, width, 3, stride=2)
        hidden = _stage(net, f"backbone.{number}", hidden, width, count, shortcut=True)
        seen.append(hidden)
    _, fine, middle, _ = seen
    coarse = _pooled(net, "backbone.pool", hidden)
    up = _stage(net, "neck.0", joined(net, doubled(net, coarse), middle), channels[3], few, shortcut=False)
    fine = _stage(net, "neck.1", joined(net, doubled(net, up), fine), channels[2], few, shortcut=False)
    down = _unit(net, "neck.2.down", fine, channels[2], 3, stride=2)
    middle = _stage(net, "neck.2", joined(net, down, up), channels[3], few, shortcut=False)
    down = _unit(net, "neck.3.down", middle, channels[3], 3, stride=2)
    coarse = _stage(net, "neck.3", joined(net, down, coarse), channels[4], few, shortcut=False)
    widths = (max(16, channels[2] // 4, 4 * BINS), max(channels[2], CLASSES))
    grids = [_predicted(net, f"head.{number}", grid, widths) for number, grid in enumerate((fine, middle, coarse))]
    places = sum(grid.shape[0] for grid in grids)
    net.output(net.add("Concat", *grids, shape=(places, PREDICTED), axis=1), "predictions")
    return net
