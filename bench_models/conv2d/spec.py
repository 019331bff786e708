"""A 3x3 convolution without bias, one pixel of padding on every side, so that the image keeps its size.

Images go in and come out as NCHW. A framework that computes in another layout turns them on the way, and that turning
is part of its time, as it is for a user whose images lie like that.
"""

from __future__ import annotations

from fairlap.models.spec import Constant, Normal, Spec, Tensor, Weight

INWARD, OUTWARD, IMAGE, KERNEL, PADDING = 64, 64, 56, 3, 1

IMPLEMENTED_IN = "fairlap.bench_models.single_operations"
SPEC = Spec(
    name="conv2d",
    task="convolution",
    inputs=(Tensor("image", ("batch", INWARD, IMAGE, IMAGE)),),
    outputs=(Tensor("convolved", ("batch", OUTWARD, IMAGE, IMAGE), Constant(0.0)),),
    weights=(Weight("kernel", (OUTWARD, INWARD, KERNEL, KERNEL), Normal((INWARD * KERNEL**2) ** -0.5)),),
    parameters=36_864,
    gmacs_per_item=0.115605504,
    published="arithmetic: 64 x 64 kernels of 3 x 3, each at 56 x 56 places",
)
