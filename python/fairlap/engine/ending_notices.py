"""What to say about how a run began and ended, on whatever clock it was taken."""

from __future__ import annotations

from fairlap.engine import digits
from fairlap.engine.measurement import Notice

SAMPLES_FOR_AN_INTERVAL = 6


def interrupted(stopped_by: str, samples: int) -> Notice | None:
    if stopped_by != "interrupt":
        return None
    return Notice("interrupted", f"interrupted after {digits.counted(samples, 'sample')}, which {_are(samples)} kept")


def few_samples(valid: int) -> Notice | None:
    if valid >= SAMPLES_FOR_AN_INTERVAL:
        return None
    if valid == 0:
        return Notice("few_samples", "no valid sample was taken, so there is no figure")
    return Notice(
        "few_samples",
        f"{digits.counted(valid, 'valid sample')} {_give(valid)} no 95 % interval; "
        f"{SAMPLES_FOR_AN_INTERVAL} are the least",
    )


def target_not_reached(target: float, stopped_by: str) -> Notice | None:
    if target == 0 or stopped_by in ("target", "interrupt", "raised"):
        return None
    return Notice(
        "target_not_reached",
        f"the interval did not shrink to the target of {target:.2%}; the run ended by {stopped_by}",
    )


def buffer_full(stopped_by: str, samples: int) -> Notice | None:
    if stopped_by != "full":
        return None
    return Notice(
        "buffer_full",
        f"all {samples:,} places for samples were used before the time was over; "
        "give samples= or a larger calls_per_sample=",
    )


def warm_up_not_settled(kind: str, settled: bool, elapsed_s: float, samples: int) -> Notice | None:
    if kind != "found" or settled or samples == 0:
        return None
    return Notice(
        "warm_up_not_settled",
        f"the warm-up had not settled after {elapsed_s:.2g} s, so the samples may still drift; "
        "give warmup= a number of calls",
    )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _give(count: int) -> str:
    return "gives" if count == 1 else "give"
