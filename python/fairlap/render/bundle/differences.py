"""Two JSON documents compared figure by figure; floats to nine digits, everything else exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

TOLERANCE = 1e-9  # relative; another processor or NumPy may round the last of sixteen digits differently


def differing(recorded: Any, computed: Any, place: str, *, only_shared: bool = False) -> Iterator[str]:
    """Report a line for each difference; ``only_shared`` ignores fields that one of two fairlap versions lacks."""
    if isinstance(recorded, dict) and isinstance(computed, dict):
        for name in {**recorded, **computed}:
            if name in recorded and name in computed:
                yield from differing(recorded[name], computed[name], f"{place}.{name}", only_shared=only_shared)
            elif not only_shared:
                yield f"{place}.{name} is {'missing' if name in computed else 'not part of it'}"
    elif isinstance(recorded, list) and isinstance(computed, list):
        if len(recorded) != len(computed):
            yield f"{place} has {len(recorded)} entries, and {len(computed)} follow from the samples"
            return
        for number, (one, other) in enumerate(zip(recorded, computed, strict=True)):
            yield from differing(one, other, f"{place}[{_label(one, number)}]", only_shared=only_shared)
    elif not _same(recorded, computed):
        yield f"{place} is {_shown(recorded)}, and {_shown(computed)} follows from the samples"


def count_figures(document: Any) -> int:
    if isinstance(document, dict):
        return sum(map(count_figures, document.values()))
    if isinstance(document, list):
        return sum(map(count_figures, document))
    return int(isinstance(document, int | float) and not isinstance(document, bool))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other or math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=0.0)
    return bool(one == other)


def _label(entry: Any, number: int) -> str:
    """Label a row by its contestant, a comparison by its pair, an entry by its number."""
    if isinstance(entry, dict):
        if "contestant" in entry:
            return str(entry["contestant"])
        if "a" in entry and "b" in entry:
            return f"{entry['a']} against {entry['b']}"
        if "work" in entry:
            return str(entry["work"])
    return str(number)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
