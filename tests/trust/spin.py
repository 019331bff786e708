"""Work of a known length, for the self-test of the whole command."""

import time

LENGTH_NS = 1_000_000


def spin() -> None:
    until_ns = time.perf_counter_ns() + LENGTH_NS
    while time.perf_counter_ns() < until_ns:
        pass
