"""A program that starts, works and ends, and the loop that times it as a user would: from its start to its end."""

import subprocess
import sys
from time import perf_counter_ns

from timing import answer, turns

COMMAND = [sys.executable, "-c", "sum(range(1_000_000))"]


def program() -> None:
    for _ in turns():
        taken_ns = []
        for _ in range(9):
            began_ns = perf_counter_ns()
            subprocess.run(COMMAND, check=True, stdin=subprocess.DEVNULL)
            taken_ns.append(perf_counter_ns() - began_ns)
        answer(taken_ns)


if __name__ == "__main__":
    program()
