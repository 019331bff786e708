"""The file of a device: the results of all parts, with the explanations that people wrote into it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .parts import PARTS
from .record import Json, now, read, write
from .running import record_file

FORMAT = 1
NOT_RUN = "not run"
EXPLAIN_OVER = 0.02  # a larger disagreement between two methods needs an explanation


def merged(device: str, facts: dict[str, Any], work: Path, before: Json | None) -> Json:
    """Combine the parts; those that did not run this time keep their results from ``before``."""
    earlier = {part["part"]: part for part in (before or {}).get("parts", ())}
    parts = []
    for part in PARTS:
        document = read(record_file(work, part.number)) or earlier.get(part.number)
        nothing: Json = {"part": part.number, "title": part.title, "status": NOT_RUN, "reason": ""}
        parts.append(document or nothing | {"goals": [], "tables": {}, "notes": []})
    explained = {_key(each): each["explanation"] for each in (before or {}).get("disagreements", ())}
    disagreements = [
        found | {"explanation": explained.get(_key(found), "")} for part in parts for found in disagreements_in(part)
    ]
    return {
        "format": FORMAT,
        "device": device,
        "written_at": now(),
        **facts,
        "parts": parts,
        "disagreements": disagreements,
        "pictures": (before or {}).get("pictures", []),
    }


def disagreements_in(part: Json) -> list[Json]:
    """Return the rows whose figure differs from its reference by more than ``EXPLAIN_OVER``."""
    found = []
    for rows in part["tables"].values():
        for row in rows:
            share = row.get("difference_share")
            if isinstance(share, int | float) and abs(share) > EXPLAIN_OVER:
                what = {key: row.get(key) for key in ("case", "method", "reference", "figure_ns", "reference_ns")}
                found.append({"part": part["part"], **what, "difference_share": share})
    return found


def merge_into(file: Path, device: str, facts: dict[str, Any], work: Path) -> Json:
    document = merged(device, facts, work, read(file))
    write(file, document)
    return document


def _key(disagreement: Json) -> tuple[Any, ...]:
    return tuple(disagreement.get(name) for name in ("part", "case", "method", "reference"))
