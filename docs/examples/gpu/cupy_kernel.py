"""``fairlap time cupy_kernel:scale --device cuda``: a CuPy kernel on CuPy's current stream."""

import cupy

array = cupy.ones(1 << 22, dtype=cupy.float32)
scale_kernel = cupy.ElementwiseKernel("float32 a", "float32 x", "x = x * a", "scale")


def scale():
    scale_kernel(cupy.float32(1.5), array)
