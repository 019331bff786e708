"""Time two callables in turn on this machine and show what each measurement knows about itself."""

from __future__ import annotations

import random

import fairlap

numbers = [random.random() for _ in range(2_000)]
backwards = sorted(numbers, reverse=True)


def sort_shuffled() -> list[float]:
    return sorted(numbers)


def sort_reversed() -> list[float]:
    return sorted(backwards)


def main() -> None:
    ratios = []
    for turn in range(6):
        # Both take turns, in an order that changes, so that a drift of the machine hits both alike.
        pair = [sort_shuffled, sort_reversed] if turn % 2 == 0 else [sort_reversed, sort_shuffled]
        results = {fn.__name__: fairlap.measure(fn, seconds=0.25) for fn in pair}
        ratios.append(results["sort_shuffled"].median_ns / results["sort_reversed"].median_ns)
    for result in results.values():
        print(result)
    print(
        f"sort_shuffled takes {min(ratios):.2f} to {max(ratios):.2f} times as long as sort_reversed "
        f"in {len(ratios)} turns. All turns were one process; another may differ."
    )


if __name__ == "__main__":
    main()
