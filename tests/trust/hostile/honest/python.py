"""Python without libraries."""

import functools
import math


def plain(values, scale):
    return sum(values.tolist()) * scale


def scaled(factor, values, scale):
    return factor * math.fsum(values.tolist()) * scale


partial = functools.partial(scaled, 1.0)


class Callable:
    """Holds a count, which changes nothing."""

    def __init__(self):
        self.calls = 0

    def __call__(self, values, scale):
        self.calls += 1
        return math.fsum(values.tolist()) * scale


instance = Callable()


def with_generator(values, scale):
    return sum(each * scale for each in values.tolist())


@functools.lru_cache(maxsize=8)
def _factor(scale):
    return scale


def cached_scalar(values, scale):
    return math.fsum(values.tolist()) * _factor(scale)


def buffer(values, scale):
    return math.fsum(memoryview(values)) * scale
