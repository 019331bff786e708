"""A call of known work, longer by the share on the command line, which is the difference that pairs must find."""

import sys
from itertools import repeat
from time import perf_counter_ns

from timing import time_calls

SHARE = float(sys.argv[1])


def call() -> None:
    began_ns = perf_counter_ns()
    for _ in repeat(None, 200_000):  # which keeps nothing: where memory lies makes processes differ by 5 %
        pass
    until_ns = began_ns + (1 + SHARE) * (perf_counter_ns() - began_ns)
    while perf_counter_ns() < until_ns:
        pass


if __name__ == "__main__":
    time_calls(call)
