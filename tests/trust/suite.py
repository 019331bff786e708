"""The simulated trust suite: which experiments, at which size, and the tables it writes.

python -m tests.trust.suite --out build/trust          the stated trials, about an hour
python -m tests.trust.suite --out build/trust --small  the size that the tests run
python -m tests.trust.suite --out build/trust --only "12 gates"  the experiments whose names begin so
python -m tests.trust.suite --out build/trust --jobs 1          one after the other, not one on each CPU
"""

import argparse
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from .drift_and_change import drift, flat_processes, known_change_points
from .figure import Experiment, Figure
from .gated_races import BOUNDS, bounds_given_afterwards, gated_races, gates_through_the_race
from .identical_arms import (
    five_identical_arms,
    five_identical_arms_through_the_ranking,
    two_identical_arms,
    two_identical_arms_at_30_blocks,
    whole_path,
    with_adaptive_stopping,
)
from .known_effects import equivalence, injected_effects, interval_coverage, intervals_of_a_family
from .rejected_rules import rejected_rules
from .until_decided import EQUALS, STEPS, equals_with_looks, rules_compared, through_judge

# Experiment, trials of the full run, trials in the tests.
EXPERIMENTS: dict[str, tuple[Experiment, int, int]] = {
    "1 two identical arms": (two_identical_arms, 10_000, 10_000),
    "1 at 30 blocks": (two_identical_arms_at_30_blocks, 50_000, 5_000),
    "2 whole path": (whole_path, 400, 60),
    "3 five identical arms": (five_identical_arms, 500, 20),
    "3 through the ranking": (five_identical_arms_through_the_ranking, 200, 100),
    "4 adaptive stopping": (with_adaptive_stopping, 10_000, 600),
    "5 injected effects": (injected_effects, 10_000, 2_000),
    "6 coverage": (interval_coverage, 10_000, 4_000),
    "7 equivalence": (equivalence, 10_000, 10_000),
    "8 drift": (drift, 10_000, 10_000),
    **{f"9 with looks, {case}": (partial(equals_with_looks, case=case), 400, 5) for case in EQUALS},
    "9 through judge": (through_judge, 300, 12),
    **{f"10 rules compared, {100 * step:.0f} %": (partial(rules_compared, step=step), 2_000, 15) for step in STEPS},
    "11 known change points": (known_change_points, 1_000, 100),
    "11 flat processes": (flat_processes, 2_000, 150),
    **{f"12 gates, {100 * bound:.0f} %": (partial(gated_races, bound=bound), 1_000, 12) for bound in BOUNDS},
    "12 bounds given afterwards": (bounds_given_afterwards, 400, 4),
    "12 through the race": (gates_through_the_race, 320, 16),
    "family intervals": (intervals_of_a_family, 1_000, 60),
    "rejected rules": (rejected_rules, 10_000, 1_000),
}


# What the protocol as specified does not reach, with the reason. Nothing is loosened for it: the table shows
# it as not met, and only the exit code of the suite leaves it out.
KNOWN_UNMET = {
    ("6", "quantised clock, 30 blocks"): (
        "with ticks wider than the noise the Hodges-Lehmann centre settles on multiples of half a tick, so "
        "from about 30 blocks on the interval is narrower than the clock can resolve"
    ),
}


def run(*, small: bool, only: str = "", jobs: int = 1) -> list[Figure]:
    """Run every experiment whose name begins so, printing on the way how long each took."""
    names = [name for name in EXPERIMENTS if name.startswith(only)]
    if jobs == 1:
        return [figure for name in names for figure in _run_one(name, small=small)]
    with ProcessPoolExecutor(jobs) as pool:
        running = {pool.submit(_run_one, name, small=small): name for name in names}
        found = {running[each]: each.result() for each in as_completed(running)}
    return [figure for name in names for figure in found[name]]


def _run_one(name: str, *, small: bool) -> list[Figure]:
    experiment, full_trials, small_trials = EXPERIMENTS[name]
    started = time.perf_counter()
    found = experiment(small_trials if small else full_trials)
    failed = sum(not figure.passed for figure in found)
    print(f"{name}: {len(found)} figures, {failed} not met, {time.perf_counter() - started:.1f} s", flush=True)
    return found


def as_markdown(figures: list[Figure]) -> str:
    """Format a table with a row per figure."""
    lines = [
        "| # | case | what | of trials | rate | asked | met |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for f in figures:
        asked = " and ".join(
            word
            for word in (
                "" if f.low is None else f"at least {100 * f.low:.2f} %",
                "" if f.high is None else f"at most {100 * f.high:.2f} %",
            )
            if word
        )
        met = "" if not asked else "yes" if f.passed else "**no**"
        rate = f"{100 * f.rate:.2f} %"
        lines.append(f"| {f.experiment} | {f.case} | {f.what} | {f.count} / {f.trials} | {rate} | {asked} | {met} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run the simulated trust suite and write its figures.")
    parser.add_argument("--out", type=Path, required=True, help="folder for trust.json and trust.md")
    parser.add_argument("--small", action="store_true", help="the size that the tests run")
    parser.add_argument("--only", default="", help="experiments whose names begin so")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="experiments at a time")
    options = parser.parse_args(arguments)
    figures = run(small=options.small, only=options.only, jobs=options.jobs)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "trust.json").write_text(json.dumps([f.as_row() for f in figures], indent=1) + "\n")
    (options.out / "trust.md").write_text(as_markdown(figures))
    unmet = [figure for figure in figures if not figure.passed]
    for figure in unmet:
        print(f"not met: {figure} {KNOWN_UNMET.get((figure.experiment, figure.case), '')}")
    return 1 if any((figure.experiment, figure.case) not in KNOWN_UNMET for figure in unmet) else 0


if __name__ == "__main__":
    sys.exit(main())
