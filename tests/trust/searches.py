"""Searches that try hundreds of changes, simulated: how many keep one that is no faster, and whether a gain is found.

python -m tests.trust.searches            the stated size, some minutes
python -m tests.trust.searches --small    the size that the tests run

Each try races up to so many blocks and ends as `fairlap judge` does: as soon as a bet decides, else by the signed ranks
at the end. A rule that gives every try 5 %, as a series of separate races would, is simulated as a control.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fairlap.judgement.judge_request import Benchmark
from fairlap.judgement.ledger import ERROR_RATE, Ledger, Side, Try, level_of_share
from fairlap.judgement.regret import regret
from fairlap.verdict import ONE_SIDE, candidate, decision_after
from fairlap.verdict.exact_tests import signed_rank
from fairlap.verdict.exact_tests.sequential import log_bets
from scipy.stats import binomtest  # type: ignore[import-untyped,unused-ignore]

from .figure import Figure, allowed_share, needed_share, seeded
from .generators import TIME_LINES, Floats, run_blocks

TRIES = 500
GAIN = 0.03
BLOCKS = 60  # in the 150 s that a race without a budget may take, at 2.5 s each
_NEVER = 10**6
_EFFECTS = 0.02  # spread of true effects, where every change has one
_TRIES_WITH_REGRET = 20


@dataclass(frozen=True)
class Tried:
    """Of each try of a search: whether it was kept, and after how many blocks it was decided."""

    kept: np.ndarray
    blocks: np.ndarray


def tried(log_speedups: Floats, levels: Floats, gain: float = 0.0) -> Tried:
    """Decide tries, shaped (tries, blocks), all at once; `the_rules_agree` compares this with what a race calls."""
    edge, most = float(np.log1p(gain)), log_speedups.shape[1]
    kept_after = _first(log_bets(log_speedups, edge) >= np.log(2 / levels)[:, None])
    discarded_after = _first(log_bets(-log_speedups, -edge) >= np.log(2 / ONE_SIDE))
    p = signed_rank.p_above(signed_rank.walsh_averages(log_speedups), edge)
    kept_at_end = (np.minimum(kept_after, discarded_after) == _NEVER) & (p <= levels / 2)
    kept = (kept_after <= discarded_after) & (kept_after < _NEVER) | kept_at_end
    return Tried(kept, np.minimum(np.minimum(kept_after, discarded_after), most))


def _first(shown: np.ndarray) -> np.ndarray:
    return np.where(shown.any(axis=1), shown.argmax(axis=1) + 1, _NEVER)


def levels_of_ledger() -> Floats:
    return np.array([level_of_share(number) for number in range(1, TRIES + 1)])


def searches(noise: str, count: int, blocks: int, gained: float, *words: object) -> Iterator[tuple[int, Floats]]:
    """Yield in which try the gain is, -1 without one, and the log speedups of all tries of each search."""
    for number in range(count):
        rng = seeded("searches", noise, blocks, gained, number, *words)
        figures = run_blocks(noise, rng, TRIES, blocks, [0.0, 0.0])
        log_speedups = figures[..., 0] - figures[..., 1]
        place = int(rng.integers(TRIES)) if gained else -1
        if gained:
            log_speedups[place] += np.log1p(gained)
        yield place, log_speedups


def equals(count: int, noise: str) -> list[Figure]:
    """Count searches among 500 changes of no effect that keep any, by the ledger, and by 5 % for each."""
    levels, each = levels_of_ledger(), np.full(TRIES, ONE_SIDE)
    false = wrong_by_5_percent = 0
    for _, log_speedups in searches(noise, count, BLOCKS, 0.0):
        false += bool(tried(log_speedups, levels).kept.any())
        wrong_by_5_percent += int(tried(log_speedups, each).kept.sum())
    return [
        Figure(
            "13", f"{TRIES} equal changes, {noise}", "searches that keep any", false, count, high=allowed_share(count)
        ),
        Figure("13", f"{TRIES} equal changes, {noise}", "tries kept at 5 % each", wrong_by_5_percent, count * TRIES),
    ]


def one_gain(count: int, noise: str, blocks: int, least: float | None = None) -> list[Figure]:
    """Count searches that keep the one change of 500 that is 3 % faster."""
    levels, found = levels_of_ledger(), 0
    for place, log_speedups in searches(noise, count, blocks, GAIN):
        found += bool(tried(log_speedups[place : place + 1], levels[place : place + 1]).kept[0])
    low = None if least is None else needed_share(count, least)
    return [Figure("13", f"one gain of 3 %, {blocks} blocks, {noise}", "searches that keep it", found, count, low=low)]


def blocks_spent(count: int, noise: str) -> list[Figure]:
    """Count the blocks that equal changes take when a gain of 2 % is asked for."""
    levels, spent = levels_of_ledger(), 0
    for _, log_speedups in searches(noise, count, BLOCKS, 0.0, "spent"):
        spent += int(tried(log_speedups, levels, 0.02).blocks.sum())
    case = f"{TRIES} equal changes, --gain 2%, {noise}"
    return [Figure("13", case, f"of {BLOCKS} blocks spent", spent, count * TRIES * BLOCKS)]


def the_rules_agree(count: int) -> list[Figure]:
    """Check that what is simulated is what a race asks after each block and at its end."""
    agree, names = 0, list(TIME_LINES)
    for number in range(count):
        rng = seeded("agree", number)
        noise, effect = names[number % len(names)], (0.0, 0.03, -0.03)[number % 3]
        figures = run_blocks(noise, rng, 1, 30, [effect, 0.0])
        log_speedups = figures[..., 0] - figures[..., 1]
        level = level_of_share(1 + number % 50)
        simulated = tried(log_speedups, np.array([level]))
        agree += bool(simulated.kept[0]) == (_by_the_race(log_speedups[0], level) == "keep")
    return [Figure("13", "through the rule of a race", "agree", agree, count, low=1.0)]


def _by_the_race(log_speedups: Floats, level: float) -> str:
    for blocks in range(1, log_speedups.size):
        decision = decision_after(log_speedups[:blocks], 0.0, level, ended=False)
        if decision != "undecided":
            return decision
    return candidate(log_speedups, level=level).decision


def regrets(count: int) -> list[Figure]:
    """Check the bound on how much slower the kept code is than the fastest of what it bounds."""
    names = ["independent", "steal bursts", "t with 2.1 df"]
    wrong = sum(_bound_is_wrong(names[number % len(names)], number) for number in range(count))
    case = f"{_TRIES_WITH_REGRET} changes of different effects, each against the last that was kept"
    return [Figure("13", case, "wrong bounds", wrong, count, high=allowed_share(count, 2 * ERROR_RATE))]


def _bound_is_wrong(noise: str, number: int) -> bool:
    """Whether the bound is below the true regret, in a search in which each kept change becomes the base."""
    rng = seeded("regret", noise, number)
    ledger, log_speeds = Ledger(), {"0": 0.0}  # true, by the code's name
    base = "0"
    for place in range(1, _TRIES_WITH_REGRET + 1):
        effect = float(rng.normal(0, _EFFECTS))
        figures = run_blocks(noise, rng, 1, BLOCKS, [effect, 0.0])[0]
        log_speedups = figures[:, 0] - figures[:, 1]
        level = level_of_share(place)
        blocks, ended = _ends_after(log_speedups, level)
        shown = candidate(log_speedups[:blocks], level=level, ended=ended)
        log_speeds[str(place)] = log_speeds[base] + effect
        added = Try(
            number=place, began_at="", base=Side("", base), change=Side("", str(place)), benchmark=Benchmark(),
            gain=0.0, share=place, level=level, outcome=shown.decision, speedup=shown.speedup, ended_undecided=ended,
            speedups=tuple(np.exp(log_speedups[:blocks]).tolist()),
        )  # fmt: skip
        ledger = Ledger(tries=(*ledger.tries, added))
        if shown.decision == "keep":
            base = str(place)
    bound = regret(ledger)
    assert bound is not None
    true = max(
        log_speeds[each.change.sha256] for each in ledger.tries if each.ended_undecided or each.outcome == "keep"
    )
    return bool(np.expm1(true - log_speeds[base]) > bound.at_most)


def _ends_after(log_speedups: Floats, level: float) -> tuple[int, bool]:
    for blocks in range(1, log_speedups.size):
        if decision_after(log_speedups[:blocks], 0.0, level, ended=False) != "undecided":
            return blocks, False
    return log_speedups.size, True


def run(*, small: bool) -> list[Figure]:
    count, noises = (30, ["independent"]) if small else (200, list(TIME_LINES))
    figures = [figure for noise in noises for figure in equals(count, noise)]
    for blocks in (30, BLOCKS, 120):
        for noise in noises if small else ["independent", "steal bursts", "t with 2.1 df"]:
            figures += one_gain(count, noise, blocks, 0.9 if noise == "independent" else None)
    for noise in noises:
        figures += blocks_spent(count // 10, noise)
    return [*figures, *the_rules_agree(33 if small else 330), *regrets(12 if small else 300)]


def main(arguments: list[str] | None = None) -> int:
    from .suite import as_markdown

    parser = argparse.ArgumentParser(description="Simulate searches and write their figures.")
    parser.add_argument("--out", type=Path, default=Path("build/trust"), help="folder for searches.md")
    parser.add_argument("--small", action="store_true", help="the size that the tests run")
    options = parser.parse_args(arguments)
    figures = run(small=options.small)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "searches.md").write_text(as_markdown(figures))
    for figure in figures:
        interval = binomtest(figure.count, figure.trials).proportion_ci(0.95)
        print(f"{figure}; 95 % interval {interval.low:.4f} to {interval.high:.4f}")
    return 0 if all(figure.passed for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
