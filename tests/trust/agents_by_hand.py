"""Whether agents in races learn as fast as those of loops by hand, over as many seeds of their own.

python -m tests.trust.agents_by_hand --algorithm dqn --seeds 10

The loops are plain PyTorch on gymnasium, written from the settings in docs/how-to/learn-to-act.md. Each seed is printed
as it ends, and Ctrl-C ends with the table of those so far. Two figures of each seed are compared: the steps to the
score, and the mean score of all looks in the first 16,384 steps, which differs between agents that reach it at the same
look, too. Exit status 1 where one of a contestant differs from those of the loops by Mann and Whitney's test at 0.5 %,
so 1 % for both, or a quarter of its seeds do not learn.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from fairlap import verdict
from scipy.stats import mannwhitneyu  # type: ignore[import-untyped,unused-ignore]

from .agreement.case import BY_HAND

BY_HAND_NAME = "by hand"
EPOCHS, LEVEL, TARGET = 120, 0.005, 0.95
EARLY_STEPS, LARGEST_RETURN = 16_384, 500

Curve = list[tuple[float, float]]
"""Of a seed: after each epoch, the steps so far and the score."""


def by_hand(algorithm: str, seed: int) -> Curve:
    command = [sys.executable, str(BY_HAND / "learning_to_act.py"), algorithm, str(seed)]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    looks = [line.split() for line in printed.splitlines()]
    return [(float(steps), float(mean_return) / LARGEST_RETURN) for steps, mean_return in looks]


def raced(algorithm: str, seed: int, on: Sequence[str]) -> dict[str, Curve]:
    import fairlap

    options: dict[str, Any] = {"epochs": EPOCHS, "blocks": 1, "seed": seed, "threads": 1, "seconds": 0.05}
    results = fairlap.compare("cartpole", on=[*on], mode=algorithm, to_score=f"{TARGET:.0%}", **options)
    found: dict[str, Curve] = {}
    for _, result, row in results.every_row():
        curves = [process.learning for process in result.finished if process.learning is not None]
        if not curves:
            sys.exit(f"{result.contestant}, seed {seed}: {row.outcome}, {row.message}")
        found[result.contestant] = [(float(each.steps), each.score or 0.0) for each in curves[0].evaluations]
    return found


def steps_to_score(curve: Curve) -> float:
    return next((steps for steps, score in curve if score >= TARGET), math.inf)


def early_score(curve: Curve) -> float:
    """Average the first looks. Of an agent that had the score, later ones count as its last."""
    looks = round(EARLY_STEPS / curve[0][0])
    scores = [score for _, score in curve[:looks]]
    return (sum(scores) + (looks - len(scores)) * scores[-1]) / looks


def chance(figures: Sequence[float], others: Sequence[float]) -> float:
    """Give the p of the test; ties and seeds that did not learn count by their ranks."""
    return float(mannwhitneyu(*([min(each, 1e12) for each in every] for every in (figures, others))).pvalue)


def compared(curves: Mapping[str, Sequence[Curve]]) -> dict[str, tuple[float, float]]:
    """Give the chances of each contestant: of its steps, and of its early scores."""
    right = curves[BY_HAND_NAME]
    return {
        name: (
            chance([*map(steps_to_score, found)], [*map(steps_to_score, right)]),
            chance([*map(early_score, found)], [*map(early_score, right)]),
        )
        for name, found in curves.items()
        if name != BY_HAND_NAME
    }


def as_table(curves: Mapping[str, Sequence[Curve]]) -> str:
    chances = compared(curves)
    lines = [
        "| contestant | seeds that learn | steps, median | interquartile mean | p | early score, median | p |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, found in curves.items():
        steps = [*map(steps_to_score, found)]
        middle, low, high = verdict.interquartile_mean(steps)
        learnt = sum(map(math.isfinite, steps))
        of_steps, of_scores = (f"{each:.2f}" for each in chances[name]) if name in chances else ("", "")
        lines.append(
            f"| {name} | {learnt} of {len(steps)} | {median(steps):,.0f} | {middle:,.0f} [{low:,.0f}, {high:,.0f}] "
            f"| {of_steps} | {median(map(early_score, found)):.2f} | {of_scores} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.trust.agents_by_hand")
    parser.add_argument("--algorithm", choices=("dqn", "ppo"), required=True)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--on", default="torch,jax", help="contestants, separated by commas")
    given = parser.parse_args()
    curves: defaultdict[str, list[Curve]] = defaultdict(list)
    with contextlib.suppress(KeyboardInterrupt):
        for seed in range(given.seeds):
            of_seed = raced(given.algorithm, seed, given.on.split(","))
            of_seed = {BY_HAND_NAME: by_hand(given.algorithm, seed), **of_seed}
            for name, curve in of_seed.items():
                curves[name].append(curve)
            found = (f"{name} {steps_to_score(each):,.0f} ({early_score(each):.3f})" for name, each in of_seed.items())
            print(f"seed {seed}: {', '.join(found)}", flush=True)
    if not curves:
        sys.exit("no seed came to its end")
    print(as_table(curves))
    unlike = [name for name, chances in compared(curves).items() if min(chances) < LEVEL]
    few = [
        name
        for name, found in curves.items()
        if sum(math.isfinite(steps_to_score(each)) for each in found) <= 0.75 * len(found)
    ]
    sys.exit(bool(unlike or few))


if __name__ == "__main__":
    main()
