"""From tables of blocks to verdicts: every pair of every table is one family.

The verdict is read off the interval, so the two cannot disagree: a difference is shown where the interval
excludes 1, equivalence where the equivalence interval lies inside the margin. A difference that is
shown takes precedence over equivalence; `within_margin` then says that it is small.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from . import signed_rank
from .arrays import Flags, Floats
from .blocks import BlockTable
from .comparison import Comparison, Interval, Verdict
from .detectable import detectable_log_effect
from .doubts import Doubt, ModesUnderneath, NoSpread, SkewedDifferences, TooFewBlocks
from .equivalence import equivalence_interval, log_margin, p_equivalent
from .errors import BadInput, require_between
from .holm import holm
from .modes import find_modes
from .sign_interval import sign_interval


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Every pair of one table at once: log ratios shaped (pairs, blocks), and their Walsh averages."""

    table: BlockTable
    first: tuple[int, ...]
    second: tuple[int, ...]
    differences: Floats
    walsh: Floats


def judge(tables: Sequence[BlockTable], *, alpha: float = 0.05, margin: float = 0.02) -> tuple[Comparison, ...]:
    """Compare all pairs of all tables shown together, corrected for their number.

    Of all differences claimed, the chance that any is false is at most alpha; of all equivalences
    claimed, likewise.
    """
    require_between("alpha", alpha, 0.0, 1.0)
    log_margin(margin)
    if not tables:
        raise BadInput("there is no table to judge")
    pairs = [_pairs_of(table) for table in tables]
    p_different = np.concatenate([signed_rank.p_two_sided(part.walsh) for part in pairs])
    p_same = np.concatenate([p_equivalent(part.walsh, margin) for part in pairs])
    different, equivalent = holm(p_different, alpha), holm(p_same, alpha)
    comparisons: list[Comparison] = []
    for part in pairs:
        here = slice(len(comparisons), len(comparisons) + len(part.first))
        comparisons += _compare(
            part,
            alpha=alpha,
            margin=margin,
            family=p_different.size,
            p_values=np.stack([p_different[here], different.adjusted[here], p_same[here], equivalent.adjusted[here]]),
            levels=different.levels[here],
            equivalence_levels=equivalent.levels[here],
        )
    return tuple(comparisons)


def _pairs_of(table: BlockTable) -> _Pairs:
    first, second = np.triu_indices(len(table.contestants), k=1)
    differences = (table.log_figures[:, first] - table.log_figures[:, second]).T
    walsh = signed_rank.walsh_averages(differences)
    return _Pairs(table, tuple(map(int, first)), tuple(map(int, second)), differences, walsh)


def _compare(
    part: _Pairs,
    *,
    alpha: float,
    margin: float,
    family: int,
    p_values: Floats,
    levels: Floats,
    equivalence_levels: Floats,
) -> list[Comparison]:
    table = part.table
    low, high = signed_rank.interval(part.walsh, levels)
    same_low, same_high = equivalence_interval(part.walsh, equivalence_levels)
    centres = signed_rank.centre(part.walsh)
    effects = detectable_log_effect(part.differences, centres, levels)
    edge = log_margin(margin)
    within = (same_low > -edge) & (same_high < edge)
    verdicts = _verdicts(low, high, within, table, alpha)
    moded = {name: len(find_modes(table.log_figures_of(name)).modes) for name in table.contestants}
    found = []
    for i, (first, second) in enumerate(zip(part.first, part.second, strict=True)):
        a, b = table.contestants[first], table.contestants[second]
        sign_low, sign_high = sign_interval(part.differences[i], float(levels[i]))
        doubts: list[Doubt] = []
        if table.blocks < signed_rank.blocks_to_reach(alpha / family):
            needed_alone = signed_rank.blocks_to_reach(alpha)
            alone = table.blocks < needed_alone
            needed = needed_alone if alone else signed_rank.blocks_to_reach(alpha / family)
            doubts.append(TooFewBlocks(table.blocks, needed, alpha, 1 if alone else family))
        if np.ptp(part.differences[i]) < signed_rank.ROUNDING:
            doubts.append(NoSpread())
        if not sign_low <= centres[i] <= sign_high:
            doubts.append(SkewedDifferences(float(np.exp(sign_low)), float(np.exp(sign_high))))
        doubts += [ModesUnderneath(name, moded[name]) for name in (a, b) if moded[name] > 1]
        found.append(
            Comparison(
                workload=table.workload,
                metric=table.metric,
                a=a,
                b=b,
                blocks=table.blocks,
                ratio=float(np.exp(centres[i])),
                interval=_ratios(low[i], high[i], levels[i]),
                p=float(p_values[0, i]),
                p_adjusted=float(p_values[1, i]),
                margin=margin,
                equivalence_interval=_ratios(same_low[i], same_high[i], 2 * equivalence_levels[i]),
                p_equivalent=float(p_values[2, i]),
                p_equivalent_adjusted=float(p_values[3, i]),
                sign_interval=_ratios(sign_low, sign_high, levels[i]),
                detectable_effect=float(np.expm1(effects[i])),
                verdict=verdicts[i],
                within_margin=bool(within[i]) and verdicts[i] is not Verdict.INCONCLUSIVE,
                evidence=table.evidence,
                doubts=tuple(doubts),
            )
        )
    return found


def _verdicts(low: Floats, high: Floats, within: Flags, table: BlockTable, alpha: float) -> list[Verdict]:
    if table.blocks < signed_rank.blocks_to_reach(alpha):
        return [Verdict.INCONCLUSIVE] * low.size
    above, below = Verdict.SLOWER, Verdict.FASTER
    if table.metric.better == "higher":
        above, below = below, above
    decided = []
    for is_above, is_below, is_within in zip(low > 0, high < 0, within, strict=True):
        otherwise = Verdict.EQUIVALENT if is_within else Verdict.INCONCLUSIVE
        decided.append(above if is_above else below if is_below else otherwise)
    return decided


def _ratios(low: float, high: float, level: float) -> Interval:
    return Interval(float(np.exp(low)), float(np.exp(high)), float(level))
