"""What the loops of two ranks share: the second process, a core for each, and how a shared step is timed."""

import os
import subprocess
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter_ns
from typing import Any

UNUSED_STEPS, TIMED_STEPS = 100, 200  # as many in both ranks, since every step is shared


class TwoRanks:
    """The first process starts the second, with the same arguments."""

    def __init__(self) -> None:
        self.second = None
        if "RANK" not in os.environ:
            shared = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": os.environ["AGREEMENT_PORT"]}
            os.environ.update(shared, RANK="0", WORLD_SIZE="2")
            second = {**shared, "RANK": "1", "WORLD_SIZE": "2"}
            self.second = subprocess.Popen([sys.executable, *sys.argv], env=second)
        self.number = int(os.environ["RANK"])
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[self.number]})

    def median_step_ns(self, step: Callable[[], Any]) -> float:
        taken_ns = []
        for _ in range(UNUSED_STEPS + TIMED_STEPS):
            began_ns = perf_counter_ns()
            step()
            taken_ns.append(perf_counter_ns() - began_ns)
        return median(taken_ns[UNUSED_STEPS:])

    def end(self) -> None:
        """When both have left what they share."""
        if self.second is None:
            os._exit(0)
        self.second.wait()
