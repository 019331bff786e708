"""SSDLite on MobileNetV2: six grids of places, from which separable convolutions predict boxes and classes.

The first grid is taken where MobileNetV2 has 576 channels, the second from its last layer, and four more are made.
"""

from __future__ import annotations

from fairlap.bench_models.graphs.images import RECTIFIED, WHOLE, convolution, normalised
from fairlap.bench_models.graphs.net import Net, Value
from fairlap.bench_models.mobilenet_v2.spec import FEATURES, STAGES
from fairlap.models.spec import BATCH, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.graphs"
IMAGE, CLASSES, BOXES = 320, 91, 6  # boxes of each place
PREDICTED = 4 + CLASSES
STEM = 32
EXTRA = (512, 256, 256, 128)  # channels of the further grids
FIRST_GRID = 13  # the block whose widened input is the first grid


def _unit(
    net: Net, name: str, image: Value, outward: int, kernel: int = 1, *, stride: int = 1, groups: int = 1,
    power: float = RECTIFIED, linear: bool = False,
) -> Value:  # fmt: skip
    """Convolve and normalise; all but ``linear`` ones end in a ReLU6."""
    edges, conv = (kernel, kernel), f"{name}.conv"
    found = convolution(
        net, conv, image, outward, edges, stride=stride, groups=groups, power=power, bias=False, symmetric=True
    )
    found = normalised(net, f"{name}.norm", found)
    return found if linear else net.add("Clip", found, net.number(0.0), net.number(6.0), shape=found.shape)


def _block(net: Net, name: str, image: Value, outward: int, expansion: int, stride: int) -> tuple[Value, Value]:
    """Make what an inverted residual block returns, and its widened input."""
    inward = image.shape[0]
    wide = image
    if expansion > 1:
        wide = _unit(net, f"{name}.expand", image, expansion * inward, power=WHOLE)
    each = _unit(net, f"{name}.each", wide, wide.shape[0], 3, stride=stride, groups=wide.shape[0])
    found = _unit(net, f"{name}.project", each, outward, linear=True)
    return net.sum(found, image) if stride == 1 and inward == outward else found, wide


def _further(net: Net, name: str, image: Value, outward: int) -> Value:
    narrow = _unit(net, f"{name}.narrow", image, outward // 2)
    each = _unit(net, f"{name}.each", narrow, outward // 2, 3, stride=2, groups=outward // 2)
    return _unit(net, f"{name}.widen", each, outward)


def _predicted(net: Net, name: str, grid: Value) -> Value:
    """Give every box of every place its four numbers and its classes, in this order."""
    channels, height, width = grid.shape
    found = []
    for part, count in (("boxes", 4), ("classes", CLASSES)):
        each = _unit(net, f"{name}.{part}", grid, channels, 3, groups=channels)
        numbers = convolution(net, f"{name}.{part}.mixed", each, BOXES * count, (1, 1))
        places = net.transpose(net.reshape(numbers, BOXES, count, height * width), 3, 1, 2)
        found.append(net.reshape(places, height * width * BOXES, count))
    return net.add("Concat", *found, shape=(height * width * BOXES, PREDICTED), axis=2)


def _net() -> Net:
    net = Net(Tensor("image", (BATCH, 3, IMAGE, IMAGE)))
    hidden = _unit(net, "stem", net.input("image"), STEM, 3, stride=2, power=WHOLE)
    grids: list[Value] = []
    number = 0
    for expansion, outward, count, stride in STAGES:
        for place in range(count):
            hidden, wide = _block(net, f"blocks.{number}", hidden, outward, expansion, 1 if place else stride)
            grids += [wide] if number == FIRST_GRID else []
            number += 1
    grids.append(_unit(net, "last", hidden, FEATURES, power=WHOLE))
    for place, channels in enumerate(EXTRA):
        grids.append(_further(net, f"extra.{place}", grids[-1], channels))
    found = [_predicted(net, f"head.{place}", grid) for place, grid in enumerate(grids)]
    boxes = sum(each.shape[0] for each in found)
    net.output(net.add("Concat", *found, shape=(boxes, PREDICTED), axis=1), "predictions")
    return net


NET = _net()
SPEC = NET.spec(
    "ssdlite",
    task="object detection",
    published="SSDLite on MobileNetV2 (layers); parameters and GMACs by arithmetic, at 320 pixels",
    parameters=4_664_988,
    loss="square_error",
)
