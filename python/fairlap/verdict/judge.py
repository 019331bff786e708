"""From tables of blocks to verdicts: every pair of every table is one family.

The verdict is read off the interval, so the two cannot disagree: a difference is shown where the interval
excludes 1, equivalence where the equivalence interval is inside the margin. A difference that is
shown takes precedence over equivalence; `within_margin` then marks it as small.

Holm's step-down correction, with the level at which each comparison was in the end tested.

statsmodels corrects p values as well, but does not give the level that each hypothesis met, and the interval of
a comparison has to be drawn at that level or it could contradict the verdict. The p values agree with
statsmodels' to the last digit; a test checks that.

What is guaranteed: of all differences claimed, the chance that any is false is at most alpha, whatever
the dependence between them. Each interval taken alone covers at least as often as 1 - alpha. All
intervals together cover less often than that, since Holm's gain over Bonferroni has to come from somewhere;
docs/explanation/verdict.md has the measured figure.

Two one-sided tests: is the centre inside the margin on both sides?

Schuirmann's construction on the signed-rank test. Each side is tested at the full level, which is the same
as asking whether the interval of confidence 1 - 2 x level is strictly inside the margin. A difference
that was merely not found is not equivalence; this has to be shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fairlap.verdict import signed_rank
from fairlap.verdict.block_planning import detectable_log_effect
from fairlap.verdict.blocks import BadInput, BlockTable, Counts, Flags, Floats, require_between
from fairlap.verdict.comparison import Comparison, Interval, Verdict
from fairlap.verdict.modes import find_modes
from fairlap.verdict.signed_rank import sign_interval
from fairlap.verdict.warnings import ModesUnderneath, NoSpread, SkewedDifferences, StatisticalWarning, TooFewBlocks


class HolmSteps(NamedTuple):
    """Arrays shaped like the p values: shown or not, the level each interval is drawn at, adjusted p."""

    shown: Flags
    levels: Floats
    adjusted: Floats


def holm(p_values: Floats, alpha: float) -> HolmSteps:
    """Correct the last axis for being one family.

    A comparison that passes Bonferroni's bound keeps that level, which gives the widest interval that still
    agrees with the verdict; one that passes only by Holm's step has the level of its step; those not shown
    have the level at which Holm stopped.
    """
    m = p_values.shape[-1]
    order = np.argsort(p_values, axis=-1, kind="stable")
    ordered = np.take_along_axis(p_values, order, axis=-1)
    steps = alpha / np.arange(m, 0, -1)
    passed = np.logical_and.accumulate(ordered <= steps, axis=-1)
    stopped = np.minimum(passed.sum(axis=-1, keepdims=True), m - 1)
    own = steps[_first_of_equals(ordered)]
    levels = np.where(passed, np.where(ordered <= steps[0], steps[0], own), steps[stopped])
    adjusted = np.minimum(1.0, np.maximum.accumulate(ordered * np.arange(m, 0, -1), axis=-1))
    back = np.argsort(order, axis=-1)
    return HolmSteps(
        np.take_along_axis(passed, back, axis=-1),
        np.take_along_axis(levels, back, axis=-1),
        np.take_along_axis(adjusted, back, axis=-1),
    )


def _first_of_equals(ordered: Floats) -> Counts:
    """Where each run of equal p values starts: equal ones share the strictest of their steps."""
    places = np.broadcast_to(np.arange(ordered.shape[-1]), ordered.shape)
    starts = np.ones(ordered.shape, dtype=np.bool_)
    starts[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    first: Counts = np.maximum.accumulate(np.where(starts, places, 0), axis=-1)
    return first


def log_margin(margin: float) -> float:
    """A margin of 0.02 reaches from 1/1.02 to 1.02, so that it means the same from either side."""
    require_between("margin", margin, 0.0, 1.0)
    return float(np.log1p(margin))


def p_equivalent(walsh: Floats, margin: float) -> Floats:
    """The p value for "the centre is inside the margin": the worse of the two one-sided ones."""
    edge = log_margin(margin)
    p: Floats = np.maximum(signed_rank.p_above(walsh, -edge), signed_rank.p_below(walsh, edge))
    return p


def equivalence_interval(walsh: Floats, levels: Floats | float) -> tuple[Floats, Floats]:
    """The interval that is strictly inside the margin exactly where the two tests show equivalence."""
    return signed_rank.interval(walsh, 2 * np.asarray(levels))


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
        warnings: list[StatisticalWarning] = []
        if table.blocks < signed_rank.blocks_to_reach(alpha / family):
            needed_alone = signed_rank.blocks_to_reach(alpha)
            alone = table.blocks < needed_alone
            needed = needed_alone if alone else signed_rank.blocks_to_reach(alpha / family)
            warnings.append(TooFewBlocks(table.blocks, needed, alpha, 1 if alone else family))
        if np.ptp(part.differences[i]) < signed_rank.ROUNDING:
            warnings.append(NoSpread())
        if not sign_low <= centres[i] <= sign_high:
            warnings.append(SkewedDifferences(float(np.exp(sign_low)), float(np.exp(sign_high))))
        warnings += [ModesUnderneath(name, moded[name]) for name in (a, b) if moded[name] > 1]
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
                warnings=tuple(warnings),
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
