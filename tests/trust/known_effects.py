"""Experiments 5, 6 and 7: a known effect, its interval, and equivalence."""

import numpy as np
from fairlap.verdict.detectable_effects import detectable_log_effect
from fairlap.verdict.exact_tests.multiplicity import correct_differences
from fairlap.verdict.exact_tests.signed_rank import centre, interval, p_equivalent, p_two_sided, walsh_averages

from .figure import Figure, allowed_share, needed_share, seeded
from .generators import TIME_LINES, Floats, run_blocks

BLOCKS = 12
MARGIN = 0.02


def _differences(name: str, rng: np.random.Generator, trials: int, effect: float, blocks: int = BLOCKS) -> Floats:
    log_figures = run_blocks(name, rng, trials, blocks, [float(np.log1p(effect)), 0.0])
    return log_figures[..., 0] - log_figures[..., 1]


def injected_effects(trials: int) -> list[Figure]:
    """Experiment 5, simulated: +1, +2 and +5 %, and the effect that runs of the kind declare detectable."""
    figures = []
    for name in TIME_LINES:
        rng = seeded("5", name)
        for effect in (0.01, 0.02, 0.05):
            low, high = interval(walsh_averages(_differences(name, rng, trials, effect)), 0.05)
            truth = np.log1p(effect)
            wrong, inside = np.count_nonzero(high < 0), np.count_nonzero((low <= truth) & (truth <= high))
            case = f"{name}, +{100 * effect:.0f} %"
            asked = 0.8 if (name, effect) == ("independent", 0.02) else None
            figures += [
                Figure("5", case, "found", int(np.count_nonzero(low > 0)), trials, low=_least(trials, asked)),
                Figure("5", case, "wrong sign", int(wrong), trials, high=0.005),
                Figure("5", case, "truth inside", int(inside), trials, low=needed_share(trials, 0.94)),
            ]
        pilots = _differences(name, rng, max(200, trials // 10), 0.0)
        declared = float(np.median(detectable_log_effect(pilots, centre(walsh_averages(pilots)), 0.05)))
        low, _ = interval(walsh_averages(_differences(name, rng, trials, float(np.expm1(declared)))), 0.05)
        case = f"{name}, +{100 * np.expm1(declared):.2g} % as declared"
        found = int(np.count_nonzero(low > 0))
        figures.append(Figure("5", case, "found", found, trials, low=_least(trials, 0.8)))
    return figures


def _least(trials: int, asked: float | None) -> float | None:
    return None if asked is None else needed_share(trials, asked)


def interval_coverage(trials: int) -> list[Figure]:
    """Experiment 6: how often the 95 % interval holds a true ratio of 1.05."""
    figures = []
    for name in TIME_LINES:
        for blocks in (10, BLOCKS, 15, 30):
            d = _differences(name, seeded("6", name, blocks), trials, 0.05, blocks)
            low, high = interval(walsh_averages(d), 0.05)
            truth = np.log1p(0.05)
            inside = int(np.count_nonzero((low <= truth) & (truth <= high)))
            upper = 0.965 if name == "independent" else None
            case = f"{name}, {blocks} blocks"
            least = needed_share(trials, 0.94)
            figures.append(Figure("6", case, "truth inside", inside, trials, low=least, high=upper))
    return figures


def equivalence(trials: int) -> list[Figure]:
    """Experiment 7: no difference at all, and a difference of exactly the margin."""
    figures = []
    for name in TIME_LINES:
        for effect in (0.0, MARGIN):
            d = _differences(name, seeded("7", name, effect), trials, effect)
            shown = int(np.count_nonzero(p_equivalent(walsh_averages(d), MARGIN) <= 0.05))
            if effect:
                bound = 0.05 if trials >= 10_000 else 0.05 + 2.33 * np.sqrt(0.05 * 0.95 / trials)
                figures.append(Figure("7", f"{name}, true 2 %", "called equivalent", shown, trials, high=bound))
            else:
                asked = 0.8 if name == "independent" else None
                figures.append(
                    Figure("7", f"{name}, true 0", "called equivalent", shown, trials, low=_least(trials, asked))
                )
    return figures


def intervals_of_a_family(trials: int) -> list[Figure]:
    """Five arms apart by known steps: each interval alone, all ten together, and false differences."""
    figures = []
    for step in (0.0, 0.01, 0.02, 0.1):
        effects: Floats = step * np.arange(5, dtype=np.float64)
        log_figures = run_blocks("independent", seeded("family", step), trials, 20, effects)
        first, second = np.triu_indices(5, k=1)
        walsh = walsh_averages(np.moveaxis(log_figures[..., first] - log_figures[..., second], -2, -1))
        levels = [
            correct_differences(figures, p, 0.05).levels
            for figures, p in zip(log_figures, p_two_sided(walsh), strict=True)
        ]
        low, high = interval(walsh, np.array(levels))
        truth = effects[first] - effects[second]
        inside = (low <= truth) & (truth <= high)
        wrong = ((low > 0) & (truth <= 0)) | ((high < 0) & (truth >= 0))
        case, allowed = f"five arms {100 * step:.0f} % apart, 20 blocks", allowed_share(trials)
        figures += [
            Figure("family", case, "one interval holds", int(inside.sum()), inside.size, low=0.94),
            Figure("family", case, "all ten hold", int(inside.all(axis=1).sum()), trials),
            Figure("family", case, "any false difference", int(wrong.any(axis=1).sum()), trials, high=allowed),
        ]
    return figures
