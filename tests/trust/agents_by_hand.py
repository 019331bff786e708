"""Whether agents in races need as many steps to the score as those of loops by hand, over as many seeds of their own.

python -m tests.trust.agents_by_hand --algorithm dqn --seeds 10

The loops are plain PyTorch on gymnasium, written from the settings in docs/how-to/learn-to-act.md. Exit status 1 where
the steps of a contestant differ from theirs by Mann and Whitney's test at 1 %, or a quarter of its seeds do not learn.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
from collections.abc import Mapping, Sequence

from fairlap import verdict
from scipy.stats import mannwhitneyu  # type: ignore[import-untyped,unused-ignore]

from .agreement.case import BY_HAND

BY_HAND_NAME = "by hand"
EPOCHS, LEVEL = 120, 0.01
Steps = list[float]
"""To the score, of each seed; infinite where it was not reached."""


def by_hand(algorithm: str, seeds: int) -> Steps:
    found = []
    for seed in range(seeds):
        command = [sys.executable, str(BY_HAND / "learning_to_act.py"), algorithm, str(seed)]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL)
        found.append(float(printed.stdout.strip() or math.inf))
    return found


def raced(algorithm: str, seeds: int, on: Sequence[str]) -> dict[str, Steps]:
    import fairlap

    results = fairlap.compare(
        "cartpole", on=[*on], mode=algorithm, to_score="95%", epochs=EPOCHS, blocks=seeds, threads=1, seconds=0.05
    )
    found: dict[str, Steps] = {}
    for _, result, _ in results.every_row():
        curves = [process.learning for process in result.finished if process.learning is not None]
        reached = [curve.reached for curve in curves]
        found[result.contestant] = [math.inf if each is None else float(each.steps) for each in reached]
    return found


def differs(steps: Steps, other: Steps) -> bool:
    """Ties and seeds that did not learn count by their ranks."""
    return bool(mannwhitneyu(_finite(steps), _finite(other)).pvalue < LEVEL)


def _finite(steps: Steps) -> Steps:
    return [min(each, 1e12) for each in steps]


def as_table(found: Mapping[str, Steps]) -> str:
    lines = ["| contestant | seeds that learn | steps, interquartile mean | |", "| --- | --- | --- | --- |"]
    for name, steps in found.items():
        middle, low, high = verdict.interquartile_mean(steps)
        learnt = sum(math.isfinite(each) for each in steps)
        word = "" if name == BY_HAND_NAME else "differs" if differs(steps, found[BY_HAND_NAME]) else "agrees"
        lines.append(f"| {name} | {learnt} of {len(steps)} | {middle:,.0f} [{low:,.0f}, {high:,.0f}] | {word} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.trust.agents_by_hand")
    parser.add_argument("--algorithm", choices=("dqn", "ppo"), required=True)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--on", default="torch,jax", help="contestants, separated by commas")
    given = parser.parse_args()
    found = {BY_HAND_NAME: by_hand(given.algorithm, given.seeds)}
    found |= raced(given.algorithm, given.seeds, given.on.split(","))
    print(as_table(found))
    unlike = [name for name, steps in found.items() if differs(steps, found[BY_HAND_NAME])]
    few = [name for name, steps in found.items() if sum(map(math.isfinite, steps)) <= 0.75 * len(steps)]
    sys.exit(bool(unlike or few))


if __name__ == "__main__":
    main()
