"""One file of all parts, and the words of people kept when it is written anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .parts import PARTS
from .record import Json, now, read, write
from .running import record_file

FORMAT = 1
NOT_RUN = "not run"
EXPLAIN_OVER = 0.02  # a larger disagreement between two methods wants a word


def merged(device: str, facts: dict[str, Any], work: Path, before: Json | None) -> Json:
    """Parts that did not run this time are taken from the file that is there, when it has them."""
    earlier = {part["part"]: part for part in (before or {}).get("parts", ())}
    parts = []
    for part in PARTS:
        told = read(record_file(work, part.number)) or earlier.get(part.number)
        nothing: Json = {"part": part.number, "title": part.title, "status": NOT_RUN, "reason": ""}
        parts.append(told or nothing | {"goals": [], "tables": {}, "notes": []})
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
    }


def disagreements_in(part: Json) -> list[Json]:
    """Rows of a part that hold a figure beside another of the same thing, and are further apart than a word is due."""
    found = []
    for rows in part["tables"].values():
        for row in rows:
            share = row.get("off_by_share")
            if isinstance(share, int | float) and abs(share) > EXPLAIN_OVER:
                what = {key: row.get(key) for key in ("case", "method", "beside", "figure_ns", "beside_ns")}
                found.append({"part": part["part"], **what, "off_by_share": share})
    return found


def merge_into(file: Path, device: str, facts: dict[str, Any], work: Path) -> Json:
    told = merged(device, facts, work, read(file))
    write(file, told)
    return told


def _key(disagreement: Json) -> tuple[Any, ...]:
    return tuple(disagreement.get(name) for name in ("part", "case", "method", "beside"))
