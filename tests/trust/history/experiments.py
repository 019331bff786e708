"""Histories made of recorded noise: how often a change is claimed that is none, and how soon a planted one is found.

A history is put together from stretches of consecutive recorded runs, all contestants together, so that what a run or
the machine did to all of them stays common to all of them, and what lasted for some runs lasts as long here.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from fairlap.history.changes import Change, changes_in
from fairlap.history.machine_drift import Control, machine_drift
from fairlap.history.trends import Series, Trend
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.store.figures import RecordedFigure

from .recording import recorded
from .rules import Rule

RUNS = 100
_PLANTED_AT = 60
_WITHIN = 3
_FIRST_LOOK = 10
_SAME_PLACE = 2


@dataclass(frozen=True)
class Claims:
    """Of one rule over many histories."""

    places: int
    points: int


@dataclass(frozen=True)
class Noise:
    """Which recorded runs a history is made of."""

    name: str
    most_load: float = math.inf  # average, on two cores
    stretch: int = 20  # consecutive runs; 1 as where runs are days apart


BUSY = Noise("other programs on the machine, load average up to 20", most_load=20.0)
CROWDED = Noise("load average up to 86")
DAYS_APART = Noise("load average up to 86, runs in drawn order", stretch=1)
NOISES = (BUSY, CROWDED, DAYS_APART)


def histories(rng: np.random.Generator, count: int, noise: Noise, runs: int = RUNS) -> Iterator[np.ndarray]:
    """Log times shaped (contestants, runs)."""
    logs = np.log(np.stack(list(recorded(noise.most_load).values())))
    for _ in range(count):
        starts = rng.integers(logs.shape[1] - noise.stretch + 1, size=-(-runs // noise.stretch))
        yield np.concatenate([logs[:, start : start + noise.stretch] for start in starts], axis=1)[:, :runs]


def without_drift(logs: np.ndarray, contestant: int) -> np.ndarray:
    """Remove what moved the others from the times of one contestant."""
    runs = np.arange(logs.shape[1])
    others = [Control(place, runs, own) for place, own in enumerate(logs) if place != contestant]
    left: np.ndarray = logs[contestant] - machine_drift(others, runs.size)
    return left


def false_alarms(
    rule: Rule, rng: np.random.Generator, count: int, noise: Noise, *, controlled: bool, every_run: bool = False
) -> Claims:
    """In whole histories; or, looked at after every run, all different places that were ever claimed."""
    places = points = 0
    for logs in histories(rng, count, noise):
        for contestant in range(logs.shape[0]):
            series = without_drift(logs, contestant) if controlled else logs[contestant]
            places += len(_ever_claimed(rule, series) if every_run else rule(series))
            points += series.size
    return Claims(places, points)


def _ever_claimed(rule: Rule, series: np.ndarray) -> list[int]:
    places: list[int] = []
    for seen in range(_FIRST_LOOK, series.size + 1):
        places += [place for place in rule(series[:seen]) if all(abs(place - each) > _SAME_PLACE for each in places)]
    return places


def found_within_three_runs(
    rule: Rule, rng: np.random.Generator, count: int, noise: Noise, step: float, *, controlled: bool
) -> tuple[int, int]:
    """Count how often a step of one contestant is claimed, when one to three runs after it are recorded.

    The claim is at most a run away from its place. Returned with the number of trials.
    """
    found = trials = 0
    for logs in histories(rng, count, noise):
        for contestant in range(logs.shape[0]):
            planted = logs.copy()
            planted[contestant, _PLANTED_AT:] += np.log1p(step)
            series = without_drift(planted, contestant) if controlled else planted[contestant]
            looks = [rule(series[: _PLANTED_AT + after]) for after in range(1, _WITHIN + 1)]
            found += any(abs(place - _PLANTED_AT) <= 1 for look in looks for place in look)
            trials += 1
    return found, trials


NAMES = ("a", "b", "c")


def changes_claimed(logs: np.ndarray, upgraded: int = RUNS) -> list[Change]:
    """By the whole of ``fairlap history``; the first contestant has another version from this run on."""
    runs = tuple(f"{run:04}" for run in range(logs.shape[1]))
    series = [
        Series(
            name,
            name,
            tuple(_point(run, own[place], new=not at and place >= upgraded) for place, run in enumerate(runs)),
        )
        for at, (name, own) in enumerate(zip(NAMES, logs, strict=True))
    ]
    trend = Trend("work", "as-found", 1, "cpu", "machine", "median time of a call", "ns", runs, tuple(series))
    return changes_in(trend, {}, margin=0.01)


def _point(run: str, log: float, *, new: bool) -> RecordedFigure:
    version, found, work = "2" if new else "1", Estimate(float(np.exp(log))), "work"
    return RecordedFigure(
        run, run, "a", "a", "fp32", version, work, work, "", "as-found", 1, "cpu", "wall_ns", "ns", found
    )


def false_causes(rng: np.random.Generator, count: int, noise: Noise) -> tuple[Counter[str], int]:
    """Count changes that whole histories claim where nothing changed, by their cause, and the points."""
    causes: Counter[str] = Counter()
    points = 0
    for logs in histories(rng, count, noise):
        causes.update(change.cause for change in changes_claimed(logs))
        points += logs.size
    return causes, points


def causes_right(rng: np.random.Generator, count: int, noise: Noise, step: float, *, of_machine: bool) -> int:
    """How often a step is claimed once, at its place and with its cause, three runs after it."""
    right = 0
    for logs in histories(rng, count, noise, _PLANTED_AT + _WITHIN):
        planted = logs.copy()
        planted[slice(None) if of_machine else 0, _PLANTED_AT:] += np.log1p(step)
        found = changes_claimed(planted, RUNS if of_machine else _PLANTED_AT)
        near = [each for each in found if abs(int(each.run) - _PLANTED_AT) <= 1]
        right += [each.cause for each in near] == ["machine" if of_machine else "contestant"]
    return right
