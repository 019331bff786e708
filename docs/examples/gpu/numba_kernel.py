"""``fairlap time numba_kernel:square --device cuda --stream numba_kernel:stream``: a Numba kernel on its own stream."""

from numba import cuda

THREADS = 256
numbers = cuda.device_array(1 << 22, dtype="float32")
numba_stream = cuda.stream()


def stream():
    """Its address."""
    return int(numba_stream.handle.value)


@cuda.jit
def square_kernel(array):
    at = cuda.grid(1)
    if at < array.size:
        array[at] *= array[at]


def square():
    square_kernel[(numbers.size + THREADS - 1) // THREADS, THREADS, numba_stream](numbers)
