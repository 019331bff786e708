"""Compare rules for change points on recorded noise: ``python -m tests.trust.history --histories 100``.

Apache Otava takes part where its package can be imported; it is not a dependency of fairlap.
"""

import argparse

import numpy as np

from ..figure import seeded
from .experiments import (
    BUSY,
    NOISES,
    RUNS,
    Noise,
    causes_right,
    false_alarms,
    false_causes,
    found_within_three_runs,
    without_drift,
)
from .recording import recorded
from .rules import Rule, rules

_STEPS = (0.02, 0.05, 0.10)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--histories", type=int, default=100)
    histories = options.parse_args().histories
    print(f"{next(iter(recorded().values())).size} recorded runs; {histories} histories of {RUNS} runs each")
    for noise in NOISES:
        print(f"\n{noise.name}: the standard deviation of runs, and without the drift of the machine\n")
        for name, spread, left in spreads(noise):
            print(f"- {name}: {100 * spread:.2f} %, {100 * left:.2f} %")
        print_whole(noise, histories)
        print_rules(noise, histories, controlled=True)
    print_rules(BUSY, histories, controlled=False)


def spreads(noise: Noise) -> list[tuple[str, float, float]]:
    times = recorded(noise.most_load)
    logs = np.log(np.stack(list(times.values())))
    left = [without_drift(logs, place) for place in range(len(times))]
    return [(name, float(np.std(logs[place])), float(np.std(left[place]))) for place, name in enumerate(times)]


def print_whole(noise: Noise, histories: int) -> None:
    """Print how the command itself does, with its margin and its causes."""
    causes, points = false_causes(seeded("causes"), histories, noise)
    claimed = ", ".join(f"{count} of the cause {cause}" for cause, count in causes.items()) or "none"
    print(f"\n`fairlap history`: false alarms in {points:,} points: {claimed}\n")
    for step in _STEPS:
        for of_machine in (False, True):
            right = causes_right(seeded("cause", step), histories, noise, step, of_machine=of_machine)
            what = "the machine" if of_machine else "a new version"
            print(f"- {what} slower by {100 * step:g} %: claimed with its cause in {100 * right / histories:.0f} %")


def print_rules(noise: Noise, histories: int, *, controlled: bool) -> None:
    print(f"\n{noise.name}, {'with' if controlled else 'without'} other contestants in the same runs\n")
    print("| rule | false alarms in 1,000 points | looked at after every run | found 2 % | 5 % | 10 % |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, rule in rules().items():
        print(row(name, rule, histories, noise, controlled=controlled), flush=True)


def row(name: str, rule: Rule, histories: int, noise: Noise, *, controlled: bool) -> str:
    cells = [name]
    for every_run in (False, True):
        rng = seeded("false alarms")
        claims = false_alarms(rule, rng, histories, noise, controlled=controlled, every_run=every_run)
        cells.append(f"{1000 * claims.places / claims.points:.2f} ({claims.places})")
    for step in _STEPS:
        found, trials = found_within_three_runs(rule, seeded("steps"), histories, noise, step, controlled=controlled)
        cells.append(f"{100 * found / trials:.0f} %")
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
