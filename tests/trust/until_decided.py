"""Experiments 9 and 10: races that end when they are decided, beside the rules that were considered for them.

Each rule is given the figures of up to 40 blocks and says when it ends and which pairs it then calls different. The
peers are here only to be measured.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np
from fairlap.verdict import Design, Verdict, block_table, decided, judge, looks
from fairlap.verdict.exact_tests.multiplicity import correct_differences, holm
from fairlap.verdict.exact_tests.signed_rank import centre, p_equivalent, p_two_sided, walsh_averages

from .figure import Figure, allowed_share, seeded
from .generators import PROCESS_SPREAD, TIME_LINES, Floats, run_blocks

MOST_BLOCKS = 40
MARGIN = 0.02
RUNNING = Design(until_decided=True, ended_blind=False)


@dataclass(frozen=True, eq=False)
class Ended:
    """After how many blocks a race ended, and of each pair: which way it is called different, or 0; equivalent."""

    blocks: int
    signs: Floats
    equivalent: Floats

    @property
    def all_decided(self) -> bool:
        return bool(((self.signs != 0) | (self.equivalent != 0)).all())


Rule = Callable[[Floats], Ended]


def until_decided(log_figures: Floats) -> Ended:
    """Ours, by the parts that `judge` and `decided` are made of; an experiment checks that the two agree."""
    blocks, contestants = log_figures.shape
    pairs = comb(contestants, 2)
    signs, equivalent, left = np.zeros(pairs), np.zeros(pairs), 0.05
    early = [look for look in looks(log_figures, alpha=0.05, margin=MARGIN, design=RUNNING) if look.blocks < blocks]
    for count, level in [*((look.blocks, look.level) for look in early), (blocks, None)]:
        level = left if level is None else level
        left -= level
        so_far = log_figures[:count]
        walsh = walsh_averages(_differences(so_far))
        shown = correct_differences(so_far, p_two_sided(walsh), level).shown
        signs = np.where((signs == 0) & shown, np.sign(centre(walsh)), signs)
        equivalent = np.maximum(equivalent, holm(p_equivalent(walsh, MARGIN), level).shown)
        found = Ended(count, signs, equivalent)
        if found.all_decided:
            break
    return found


def _differences(log_figures: Floats) -> Floats:
    first, second = np.triu_indices(log_figures.shape[1], k=1)
    differences: Floats = (log_figures[:, first] - log_figures[:, second]).T
    return differences


def fixed_with_holm(blocks: int) -> Rule:
    """Make the rule of the design before this one: so many blocks, judged once, all pairs corrected by Holm."""

    def rule(log_figures: Floats) -> Ended:
        walsh = walsh_averages(_differences(log_figures[:blocks]))
        shown = holm(p_two_sided(walsh), 0.05).shown
        return Ended(blocks, np.where(shown, np.sign(centre(walsh)), 0.0), np.zeros(shown.size))

    return rule


def group_sequential(log_figures: Floats) -> Ended:
    """Test after every block at one constant level (Pocock), exact by simulation, with Holm over the pairs."""
    differences = _differences(log_figures)
    smallest_p = np.ones(differences.shape[0])
    signs = np.zeros(differences.shape[0])
    for count in range(6, log_figures.shape[0] + 1):
        walsh = walsh_averages(differences[:, :count])
        smallest_p = np.minimum(smallest_p, p_two_sided(walsh))
        p = (1 + np.searchsorted(_smallest_p_of_equals(), smallest_p, side="right")) / (1 + _PATHS)
        signs = np.where((signs == 0) & holm(p, 0.05).shown, np.sign(centre(walsh)), signs)
        if (signs != 0).all():
            break
    return Ended(count, signs, np.zeros(signs.size))


_PATHS = 20_000


@lru_cache(maxsize=1)
def _smallest_p_of_equals() -> Floats:
    """Sorted: over all looks of a race between two equals. It depends on ranks alone, so any noise will do."""
    noise = np.random.default_rng(0).normal(size=(_PATHS, MOST_BLOCKS))
    smallest = np.ones(_PATHS)
    for count in range(6, MOST_BLOCKS + 1):
        for part in np.array_split(np.arange(_PATHS), 10):
            smallest[part] = np.minimum(smallest[part], p_two_sided(walsh_averages(noise[part, :count])))
    return np.sort(smallest)


_BETS = np.array([0.2, 0.4, 0.6, 0.8, 0.95])


def betting(log_figures: Floats) -> Ended:
    """Bet on each sign with an e-value per pair, more for larger differences; closed by averaging (Vovk and Wang)."""
    differences = _differences(log_figures)
    pairs = differences.shape[0]
    wealth = np.ones((pairs, 2, _BETS.size))
    signs = np.zeros(pairs)
    for count in range(1, log_figures.shape[0] + 1):
        so_far = np.abs(differences[:, :count])
        rank = (so_far <= so_far[:, -1:]).mean(axis=1)  # among those so far: known before the sign is
        stake = (np.sign(differences[:, count - 1]) * (0.5 + 0.5 * rank))[:, None, None]
        wealth *= 1 + np.array([1, -1])[:, None] * _BETS * stake
        shown = _closed_by_averaging(wealth.mean(axis=(1, 2))) >= 1 / 0.05
        sides = np.sign(wealth[:, 0].mean(axis=1) - wealth[:, 1].mean(axis=1))
        signs = np.where((signs == 0) & shown, sides, signs)
        if (signs != 0).all():
            break
    return Ended(count, signs, np.zeros(pairs))


def _closed_by_averaging(e_values: Floats) -> Floats:
    """Compute the least average of any set of pairs that holds the pair."""
    adjusted = np.empty_like(e_values)
    for pair, own in enumerate(e_values):
        others = np.sort(np.delete(e_values, pair))
        adjusted[pair] = ((own + np.concatenate([[0.0], np.cumsum(others)])) / np.arange(1, e_values.size + 1)).min()
    return adjusted


def _false_claims(ended: Ended, log_effects: Floats) -> tuple[bool, bool]:
    """Whether a pair of equals is called different, and whether a difference has the wrong sign."""
    truth = _differences(log_effects[None, :])[:, 0]
    wrong = (ended.signs != 0) & (ended.signs != np.sign(truth))
    return bool((wrong & (truth == 0)).any()), bool((wrong & (truth != 0)).any())


EQUALS = {
    "2 equal": [0.0, 0.0],
    "4 equal": [0.0] * 4,
    "5 equal": [0.0] * 5,
    "2 of 3 equal, one apart by 10 %": [0.0, 0.0, 0.1],
    "2 of 4 equal, two apart by 5 and 20 %": [0.0, 0.0, 0.05, 0.2],
    "2 and 2 equal, 3 % between": [0.0, 0.0, 0.03, 0.03],
    "3 of 5 equal, two apart by 10 and 50 %": [0.0, 0.0, 0.0, 0.1, 0.5],
}


def equals_with_looks(trials: int, case: str) -> list[Figure]:
    """Experiment 9: all equal, or two or three of them; any false difference at any look."""
    effects, false, wrong, early, runs = EQUALS[case], 0, 0, 0, trials * len(TIME_LINES)
    for name in TIME_LINES:
        drawn = run_blocks(name, seeded("9", case, name), trials, MOST_BLOCKS, effects)
        for log_figures in drawn:
            ended = until_decided(log_figures)
            claims = _false_claims(ended, np.array(effects))
            false, wrong, early = false + claims[0], wrong + claims[1], early + (ended.blocks < MOST_BLOCKS)
    of_all = f"{case}, eleven kinds of noise"
    return [
        Figure("9", of_all, "equals called different", false, runs, high=allowed_share(runs)),
        Figure("9", of_all, "wrong sign", wrong, runs, high=0.01),
        Figure("9", of_all, "ended before the last block", early, runs),
    ]


RULES: dict[str, Rule] = {
    "until decided": until_decided,
    "Holm, 12 blocks": fixed_with_holm(12),
    "Holm, 20 blocks": fixed_with_holm(20),
    "group sequential": group_sequential,
    "betting": betting,
}
SPREAD = 0.03


STEPS = (0.0, 0.02, 0.05, 0.2, 1.0)


def rules_compared(trials: int, step: float) -> list[Figure]:
    """Experiment 10: four contestants a step apart each; pairs found, runs with all six, and blocks spent."""
    figures = []
    effects: Floats = float(np.log1p(step)) * np.arange(4, dtype=np.float64)
    scale = SPREAD / (PROCESS_SPREAD * np.sqrt(2))
    drawn = scale * run_blocks("independent", seeded("10", step), trials, MOST_BLOCKS, effects / scale)
    for name, rule in RULES.items():
        ended = [rule(log_figures) for log_figures in drawn]
        found = int(sum((each.signs != 0).sum() for each in ended))
        blocks = sum(each.blocks for each in ended)
        ours = name == "until decided"
        case = f"steps of {100 * step:.0f} %, {name}"
        false = sum(any(_false_claims(each, effects)) for each in ended)
        figures += [
            Figure("10", case, "pairs called different", found, 6 * trials),
            Figure("10", case, "all six", sum(bool((each.signs != 0).all()) for each in ended), trials),
            Figure("10", case, "any false or wrong", false, trials, high=allowed_share(trials) if ours else None),
            Figure("10", case, "of 40 blocks spent", blocks, MOST_BLOCKS * trials, high=_most_spent(ours, step)),
        ]
    return figures


def _most_spent(ours: bool, step: float) -> float | None:
    """Contestants 20 % apart or more are to be decided after six blocks nearly always."""
    return 6.5 / MOST_BLOCKS if ours and step >= 0.2 else None


def through_judge(trials: int) -> list[Figure]:
    """Check that the functions that a race calls after every block give what experiments 9 and 10 measure."""
    agree = 0
    names = list(TIME_LINES)
    for trial in range(trials):
        effects = [[0.0, 0.0, 0.0], [0.0, 0.03, 0.2], [0.0, 0.0, 0.1]][trial % 3]
        name = names[trial % len(names)]
        log_figures = run_blocks(name, seeded("9 through judge", trial), 1, 24, effects)[0]
        table = block_table({letter: np.exp(log_figures[:, i]) for i, letter in enumerate("abc")})
        blocks = next((n for n in range(2, 24) if decided([table.first(n)], design=RUNNING)), 24)
        design = RUNNING if blocks < 24 else Design(until_decided=True)
        found = judge([table.first(blocks)], design=design)
        ended = until_decided(log_figures)
        signs = [{Verdict.SLOWER: 1, Verdict.FASTER: -1}.get(each.verdict, 0) for each in found]
        agree += blocks == ended.blocks and signs == ended.signs.tolist()
    return [Figure("9", "all generators in turn, through decided and judge", "agree", agree, trials, low=1.0)]
