"""Let NumPy's library for matrices compute with one thread, so that none of its threads spins while others are timed.

After a product on several threads those of OpenBLAS spin for some 100 ms and those of MKL for 200 ms, and take cores
from whatever is timed then. On a busy machine several threads are slower than one as well: a layer of a perceptron took
40 times as long. Accelerate's threads do not spin, and its number of threads is left alone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

_MAPS = Path("/proc/self/maps")
_FUNCTIONS = (  # what reads the number of threads, and what sets it
    ("scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"),
    ("scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"),
    ("openblas_get_num_threads64_", "openblas_set_num_threads64_"),
    ("openblas_get_num_threads", "openblas_set_num_threads"),
    ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
    ("bli_thread_get_num_threads", "bli_thread_set_num_threads"),
)


@contextmanager
def one_thread_for_matrices() -> Iterator[None]:
    """In every such library that is loaded. Their numbers of threads are given back at the end."""
    with ExitStack() as stack:
        for library in _loaded():
            for get, set_to in _FUNCTIONS:
                if hasattr(library, get) and hasattr(library, set_to):
                    stack.callback(getattr(library, set_to), getattr(library, get)())
                    getattr(library, set_to)(1)
                    break
        yield


def _loaded() -> Iterator[Any]:
    """Libraries that this process has mapped; none where the system does not list them."""
    try:
        mapped = {line.split(maxsplit=5)[-1] for line in _MAPS.read_text().splitlines() if "/" in line}
    except OSError:
        return
    for file in sorted(mapped):
        if any(name in Path(file).name for name in ("blas", "mkl_rt", "blis")):
            try:
                yield ctypes.CDLL(file)
            except OSError:  # replaced or removed since it was loaded
                continue
