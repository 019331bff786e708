"""What feeding cost: items a second with all that is around them, and the share of the time that was waited."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairlap.pipelines.pipeline import WAITED
from fairlap.race.laps import Lap

_NS_PER_S = 1e9
_CAUSES = {"source_ns": "reading", "staging_ns": "copying", "no_slot_ns": "no free slot"}
WORK = "work"


def items_per_s(lap: Lap) -> float | None:
    return lap.feeding["items"] / lap.feeding["wall_ns"] * _NS_PER_S if lap.feeding.get("wall_ns") else None


def waited_share(lap: Lap) -> float | None:
    return lap.feeding[WAITED] / lap.feeding["wall_ns"] if lap.feeding.get("wall_ns") else None


def stalls(laps: Sequence[Lap]) -> dict[str, float]:
    """Shares of the wall time by what it went into, over all processes: work, and what was waited for. A pipeline that
    does not tell what it waited for has waited, and no more is known."""
    fed = [lap.feeding for lap in laps if lap.feeding.get("wall_ns")]
    if not fed:
        return {}
    wall_ns = sum(each["wall_ns"] for each in fed)
    causes = {name: key for key, name in _CAUSES.items() if all(key in each for each in fed)} or {"waited": WAITED}
    return {name: sum(each[key] for each in fed) / wall_ns for name, key in {WORK: "work_ns", **causes}.items()}


def fed_line(laps: Sequence[Lap]) -> str:
    """One line under a contestant; empty when nothing was fed."""
    shares = stalls(laps)
    if not shares:
        return ""
    rate = float(np.median([items_per_s(lap) or 0.0 for lap in laps if lap.feeding]))
    pipeline = next((lap.in_force["feed"] for lap in laps if "feed" in lap.in_force), "a pipeline")
    waited = float(np.median([waited_share(lap) or 0.0 for lap in laps if lap.feeding]))
    causes = ", ".join(f"{name} {share:.1%}" for name, share in shares.items() if name not in (WORK, "waited"))
    told = f" ({causes})" if causes else ""
    return f"fed by {pipeline}: {rate:,.0f} items/s, waited {waited:.1%} of the time{told}"
