"""Compare two callables in one process: which is faster, by how much, and whether the difference is real."""

from __future__ import annotations

import random

import fairlap

numbers = [random.random() for _ in range(2_000)]
backwards = sorted(numbers, reverse=True)


def sort_shuffled() -> list[float]:
    return sorted(numbers)


def sort_reversed() -> list[float]:
    return sorted(backwards)


if __name__ == "__main__":
    print(fairlap.compare({"shuffled": sort_shuffled, "reversed": sort_reversed}))
