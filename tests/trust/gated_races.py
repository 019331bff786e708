"""Experiment 12: gates. How often a race with a bound finds it exceeded, or kept to, and after how many blocks.

The true slowdown is none, half of the bound, the bound itself, and a step above it. At the bound either answer is
wrong; below it "exceeded" is, above it "within" is. Each is allowed in 2.5 % of races, early looks included.
"""

import numpy as np
from fairlap.verdict import Design, Gate, Slowdown, block_table, decided, design_so_far, judge, looks, slowdown_of
from fairlap.verdict.exact_tests import signed_rank

from .figure import Figure, allowed_share, seeded
from .generators import TIME_LINES, Floats, run_blocks
from .until_decided import MARGIN, MOST_BLOCKS, until_decided

BOUNDS = (0.01, 0.02, 0.05, 0.2)
STEP = 0.03  # above the bound
WRONG = 0.025
_ALPHA = 0.05
_UNDECIDED = (Slowdown.UNDECIDED, MOST_BLOCKS)

Outcome = tuple[Slowdown, int]


def gated(log_figures: Floats, bound: float) -> Outcome:
    """Of base and change, by the parts that `decided` and `judge` are made of; an experiment checks that they agree."""
    edge = float(np.log1p(bound))
    design = Design(until_decided=True, gate=Gate("base", bound))
    times_the_bound = log_figures[:, 1] - log_figures[:, 0] - edge
    taken = looks(log_figures + np.array([edge, 0.0]), alpha=_ALPHA, margin=MARGIN, design=design)
    for look in taken:
        if look.blocks < signed_rank.blocks_to_reach(look.level):
            continue
        walsh = signed_rank.walsh_averages(times_the_bound[None, : look.blocks])
        low, high = (float(end[0]) for end in signed_rank.interval(walsh, np.array([look.level])))
        if low > signed_rank.ROUNDING:
            return Slowdown.EXCEEDED, look.blocks
        if high < -signed_rank.ROUNDING:
            return Slowdown.WITHIN, look.blocks
    return _UNDECIDED


def through_the_race(log_figures: Floats, bound: float) -> Outcome:
    """As a race does it: after each block it asks whether all is decided, and the gate reads the shown interval."""
    gate = Gate("base", bound)
    table = block_table({"base": np.exp(log_figures[:, 0]), "change": np.exp(log_figures[:, 1])})
    running = Design(until_decided=True, ended_blind=False, gate=gate)
    ended = next((n for n in range(2, table.blocks) if decided([table.first(n)], design=running)), table.blocks)
    shown = table.first(ended)
    [found] = judge([shown], design=design_so_far([shown], until_decided=True, gate=gate))
    return slowdown_of(found.reversed(), bound), ended


def bound_given_afterwards(log_figures: Floats, bound: float) -> Outcome:
    """Of a race that ended when its verdict was decided and did not know the bound."""
    ended = until_decided(log_figures)
    table = block_table({"base": np.exp(log_figures[:, 0]), "change": np.exp(log_figures[:, 1])}).first(ended.blocks)
    design = Design(until_decided=True, ended_blind=not ended.all_decided)
    [found] = judge([table], design=design)
    return slowdown_of(found.reversed(), bound), ended.blocks


def _true_slowdowns(bound: float) -> dict[str, float]:
    return {"none": 0.0, "half of it": bound / 2, "the bound": bound, "3 % above": (1 + bound) * (1 + STEP) - 1}


def _drawn(name: str, trials: int, slower_by: float, *words: object) -> Floats:
    return run_blocks(name, seeded("12", name, *words), trials, MOST_BLOCKS, [0.0, float(np.log1p(slower_by))])


def gated_races(trials: int, bound: float) -> list[Figure]:
    """``trials`` of each kind of noise. A coarse clock is apart: its ticks are as wide as the smaller bounds."""
    figures = []
    exact = [name for name in TIME_LINES if name != "quantised clock"]
    for truth, slower_by in _true_slowdowns(bound).items():
        for names, kinds in ((exact, "ten kinds of noise"), (["quantised clock"], "a coarse clock")):
            outcomes = [
                gated(log_figures, bound)
                for name in names
                for log_figures in _drawn(name, trials, slower_by, bound, truth)
            ]
            figures += _figures(f"bound {100 * bound:.0f} %, slower by {truth}, {kinds}", truth, outcomes)
    return figures


def _figures(case: str, truth: str, outcomes: list[Outcome]) -> list[Figure]:
    races, found = len(outcomes), [each for each, _ in outcomes]
    early = sum(blocks < MOST_BLOCKS for _, blocks in outcomes)
    most = allowed_share(races, WRONG)
    above, below = truth == "3 % above", truth in ("none", "half of it")
    return [
        Figure("12", case, "exceeded", found.count(Slowdown.EXCEEDED), races, high=None if above else most),
        Figure("12", case, "within", found.count(Slowdown.WITHIN), races, high=None if below else most),
        Figure("12", case, "decided before the last block", early, races),
        Figure("12", case, "of 40 blocks spent", sum(blocks for _, blocks in outcomes), MOST_BLOCKS * races),
    ]


def bounds_given_afterwards(trials: int) -> list[Figure]:
    """At the bound, where the race did not know it. What it may cost is stated and not bounded."""
    figures = []
    for bound in BOUNDS:
        outcomes = [
            bound_given_afterwards(log_figures, bound)
            for name in TIME_LINES
            for log_figures in _drawn(name, trials, bound, bound, "afterwards")
        ]
        case = f"bound {100 * bound:.0f} %, given afterwards, slower by the bound, eleven kinds of noise"
        figures += [
            Figure("12", case, what.value, sum(each is what for each, _ in outcomes), len(outcomes))
            for what in (Slowdown.EXCEEDED, Slowdown.WITHIN)
        ]
    return figures


def gates_through_the_race(trials: int) -> list[Figure]:
    """Check that the functions that a race calls after every block give what experiment 12 measures."""
    agree, names = 0, list(TIME_LINES)
    for trial in range(trials):
        bound = BOUNDS[trial % len(BOUNDS)]
        slower_by = list(_true_slowdowns(bound).values())[trial // len(BOUNDS) % 4]
        [log_figures] = _drawn(names[trial % len(names)], 1, slower_by, "race", trial)
        agree += through_the_race(log_figures, bound) == gated(log_figures, bound)
    return [Figure("12", "all generators in turn, through decided and judge", "agree", agree, trials, low=1.0)]
