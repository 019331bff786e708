"""C through ctypes, and threads that end within the call."""

import ctypes
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

_libc = ctypes.CDLL(None)
_compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_int64))
_pool = ThreadPoolExecutor(2)
_first = [True]


def c_sort(numbers):
    answer = numbers.copy()
    _libc.qsort(
        ctypes.c_void_p(answer.ctypes.data),
        ctypes.c_size_t(answer.size),
        ctypes.c_size_t(8),
        _compare(lambda a, b: (a[0] > b[0]) - (a[0] < b[0])),
    )
    return answer


def in_threads(numbers):
    halves = _pool.map(np.sort, np.array_split(numbers, 2))
    return np.sort(np.concatenate(list(halves)), kind="stable")


def slow_first_call(numbers):
    if _first.pop() if _first else False:
        time.sleep(0.3)
    return np.sort(numbers)
