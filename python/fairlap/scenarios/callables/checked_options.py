"""Options of a comparison in this process that are refused before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlap.engine.arguments import positive_number, truth
from fairlap.errors import InvalidRequest, shown
from fairlap.request.units import require_within_a_day
from fairlap.suggestions import did_you_mean


def require_fit(
    options: Mapping[str, Any],
    *,
    alpha: object,
    margin: object,
    target: object,
    seconds: object,
    **switches: object,
) -> None:
    """Refuse what is no number or no truth, and what would be taken for the one callable that is measured."""
    for name, value in (("alpha", alpha), ("margin", margin), ("target", target)):
        if value is not None or name in ("alpha", "margin"):
            positive_number(name, value)
    require_within_a_day("seconds", None if seconds is None else positive_number("seconds", seconds))
    for name, value in switches.items():
        truth(name, value)
    if found := [name for name in ("args", "kwargs") if name in options]:
        raise InvalidRequest(f"{found[0]}: callables get the arguments that inputs= draws; give a function that does")
    if found := [name for name in ("name", "samples", "warmup") if name in options]:
        raise InvalidRequest(f"{found[0]} is for one callable, as of fairlap.measure; leave it out")


def require_baseline(callables: Mapping[str, Any], baseline: object) -> None:
    if baseline is not None and (not isinstance(baseline, str) or baseline not in callables):
        meant = did_you_mean(str(baseline), callables) or f"name {' or '.join(callables)}"
        raise InvalidRequest(f"baseline={shown(baseline)} is not one of the callables; {meant}")
