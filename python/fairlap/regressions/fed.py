"""What two runs were fed, as facts that they have to agree in: to be fed is work of its own, and other data is other
work. So is another pipeline; the names of those who are held against each other ask for the same one."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap.pipelines.data import DATA_HASH
from fairlap.race.laps import Lap, values_in_force
from fairlap.race.saving import SavedRun

DATA, PIPELINE, FEED = "data", "pipeline", "feed"
OF_FEEDING = frozenset({DATA_HASH, FEED})
"""Settings of a process that are told here, and not a second time beside the others."""
_NOTHING = "nothing was fed"


def what_was_fed(
    before: SavedRun, old: Sequence[Lap], after: SavedRun, new: Sequence[Lap]
) -> tuple[dict[str, str], dict[str, str]]:
    """What only one of two fed runs recorded is no difference. Who was not fed has no pipeline to differ in."""
    told_before, told_after = ({DATA: run.plan.data or _NOTHING} for run in (before, after))
    if not (before.plan.data and after.plan.data):
        return told_before, told_after
    hashes = _all(old, DATA_HASH), _all(new, DATA_HASH)
    if all(hashes) and hashes[0] == hashes[1]:
        told_after[DATA] = told_before[DATA]  # the same samples, wherever they lie
    elif all(hashes):
        told_before[DATA] += f" (hash {hashes[0]})"
        told_after[DATA] += f" (hash {hashes[1]})"
    pipelines = _all(old, FEED), _all(new, FEED)
    if all(pipelines):
        told_before[PIPELINE], told_after[PIPELINE] = pipelines
    return told_before, told_after


def _all(laps: Sequence[Lap], setting: str) -> str:
    return " and ".join(values_in_force(laps, setting))
