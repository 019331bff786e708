"""What feeding cost one process: items a second with all that is around them, and what its time went into."""

from __future__ import annotations

from fairlap.pipelines.pipeline import WAITED
from fairlap.race.laps import Lap

_NS_PER_S = 1e9
_CAUSES = {"source_ns": "reading", "staging_ns": "copying", "no_slot_ns": "no free slot"}
WORK, NO_CAUSE_TOLD = "work", "waited"


def items_per_s(lap: Lap) -> float | None:
    return lap.feeding["items"] / lap.feeding["wall_ns"] * _NS_PER_S if lap.feeding.get("wall_ns") else None


def waited_share(lap: Lap) -> float | None:
    return lap.feeding[WAITED] / lap.feeding["wall_ns"] if lap.feeding.get("wall_ns") else None


def time_shares(lap: Lap) -> dict[str, float]:
    """Shares of the wall time by what it went into: work, and what was waited for. A pipeline that does not tell what
    it waited for has waited, and no more is known. Nothing when the process was not fed."""
    fed = lap.feeding
    if not fed.get("wall_ns"):
        return {}
    causes = {name: key for key, name in _CAUSES.items() if key in fed} or {NO_CAUSE_TOLD: WAITED}
    return {name: fed[key] / fed["wall_ns"] for name, key in {WORK: "work_ns", **causes}.items()}
