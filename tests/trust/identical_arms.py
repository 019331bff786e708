"""Experiments 1, 2, 3 and 4: identical contestants, where every difference claimed is false."""

import numpy as np
from fairlap.verdict import Verdict, block_table, judge, process_figure, standing, steady_state
from fairlap.verdict.exact_tests.multiplicity import correct_differences
from fairlap.verdict.exact_tests.signed_rank import centre, p_two_sided, walsh_averages
from fairlap.verdict.when_to_stop.precise_enough import blinded_half_width

from .figure import Figure, allowed_share, seeded
from .generators import TIME_LINES, Floats, run_blocks

BLOCKS = 12


def two_identical_arms(trials: int) -> list[Figure]:
    """Experiment 1: rejections at 5 %."""
    return _two_identical_arms(trials, BLOCKS)


def two_identical_arms_at_30_blocks(trials: int) -> list[Figure]:
    """Experiment 1 where the test's own level, 4.97 %, is closest to the nominal one; hence more trials."""
    return _two_identical_arms(trials, 30)


def _two_identical_arms(trials: int, blocks: int) -> list[Figure]:
    figures = []
    for name in TIME_LINES:
        rng, claimed = seeded("1", name, blocks), 0
        for size in _portions(trials, 5_000):
            log_figures = run_blocks(name, rng, size, blocks, [0.0, 0.0])
            p = p_two_sided(walsh_averages(log_figures[..., 0] - log_figures[..., 1]))
            claimed += int(np.count_nonzero(p <= 0.05))
        case = f"{name}, {blocks} blocks"
        figures.append(Figure("1", case, "called different", claimed, trials, high=allowed_share(trials)))
    return figures


def _portions(trials: int, at_most: int) -> list[int]:
    """Portions that fit into memory."""
    whole, rest = divmod(trials, at_most)
    return [at_most] * whole + [rest] * (rest > 0)


def whole_path(trials: int) -> list[Figure]:
    """Experiment 2, simulated: raw samples through steady state, process figure, table and judgement."""
    claimed = 0
    names = list(TIME_LINES)
    for trial in range(trials):
        name = names[trial % len(names)]
        rng = seeded("2", trial)
        log_levels = run_blocks(name, rng, 1, BLOCKS, [0.0, 0.0])[0]
        figures = {
            arm: [process_figure(samples, steady_state(samples)).value for samples in _processes(rng, column)]
            for arm, column in zip("ab", log_levels.T, strict=True)
        }
        found = judge([block_table(figures)])[0]
        claimed += found.verdict in (Verdict.FASTER, Verdict.SLOWER)
    case = "all generators in turn"
    return [Figure("2 (simulated)", case, "called different", claimed, trials, high=allowed_share(trials))]


def _processes(rng: np.random.Generator, log_levels: Floats) -> Floats:
    """Forty samples for each process, the first eight of every third one warming up."""
    samples = 1e6 * np.exp(log_levels[:, None] + rng.normal(0, 0.02, (log_levels.size, 40)))
    samples[::3, :8] *= 1.3
    return samples


def five_identical_arms(trials: int) -> list[Figure]:
    """Experiment 3: any winner, and any difference at all, among five."""
    figures = []
    for name in TIME_LINES:
        log_figures = run_blocks(name, seeded("3", name), trials, BLOCKS, [0.0] * 5)
        winner, any_claim = _winners(log_figures)
        high = allowed_share(trials)
        figures.append(Figure("3", name, "a winner named", winner, trials, high=high))
        figures.append(Figure("3", name, "any difference claimed", any_claim, trials, high=high))
    return figures


def five_identical_arms_through_the_ranking(trials: int) -> list[Figure]:
    """Experiment 3 once more through the functions a user calls."""
    winners = 0
    for trial in range(trials):
        name = list(TIME_LINES)[trial % len(TIME_LINES)]
        log_figures = run_blocks(name, seeded("3 ranking", trial), 1, BLOCKS, [0.0] * 5)[0]
        table = block_table({f"arm {i}": np.exp(log_figures[:, i]) for i in range(5)})
        winners += standing(table, judge([table])).winner is not None
    case = "all generators in turn, through judge and standing"
    return [Figure("3", case, "a winner named", winners, trials, high=allowed_share(trials))]


def _winners(log_figures: Floats) -> tuple[int, int]:
    arms = log_figures.shape[-1]
    first, second = np.triu_indices(arms, k=1)
    winners = claims = 0
    for figures in log_figures:
        walsh = walsh_averages((figures[:, first] - figures[:, second]).T)
        shown = correct_differences(figures, p_two_sided(walsh), 0.05).shown
        faster = np.where(centre(walsh) < 0, first, second)[shown]
        winners += np.bincount(faster, minlength=arms).max() == arms - 1
        claims += bool(shown.any())
    return int(winners), claims


def with_adaptive_stopping(trials: int) -> list[Figure]:
    """Experiment 4: two and five identical arms, stopped by the blinded rule between 12 and 60 blocks."""
    figures = []
    high = allowed_share(trials)
    for name in TIME_LINES:
        log_figures = run_blocks(name, seeded("4", name), trials, 60, [0.0, 0.0])
        stops = stopping_points(log_figures, 0.012, 0.05)
        claimed = 0
        for blocks in np.unique(stops):
            chosen = log_figures[stops == blocks][:, :blocks]
            p = p_two_sided(walsh_averages(chosen[..., 0] - chosen[..., 1]))
            claimed += int(np.count_nonzero(p <= 0.05))
        typical = f"{name}, stopped at {int(np.median(stops))} in the median"
        figures.append(Figure("4", typical, "called different", claimed, trials, high=high))
    for name in ("independent", "autoregressive .95", "bimodal 20 %", "Pareto 1.5"):
        few = max(40, trials // 20)
        log_figures = run_blocks(name, seeded("4 five", name), few, 60, [0.0] * 5)
        stops = stopping_points(log_figures, 0.02, 0.005)
        winners = any_claims = 0
        for blocks in np.unique(stops):
            winner, any_claim = _winners(log_figures[stops == blocks][:, :blocks])
            winners, any_claims = winners + winner, any_claims + any_claim
        case = f"{name}, five arms, stopped at {int(np.median(stops))} in the median"
        figures.append(Figure("4", case, "a winner named", winners, few, high=allowed_share(few)))
        figures.append(Figure("4", case, "any difference claimed", any_claims, few, high=allowed_share(few)))
    return figures


def stopping_points(log_figures: Floats, target: float, level: float) -> Floats:
    """After how many blocks each trial stops, looking after every third block."""
    trials, cap = log_figures.shape[:2]
    stops = np.full(trials, cap)
    going = np.arange(trials)
    for blocks in range(BLOCKS, cap, 3):
        narrow = blinded_half_width(log_figures[going, :blocks], level) <= target
        stops[going[narrow]] = blocks
        going = going[~narrow]
        if going.size == 0:
            break
    return stops
