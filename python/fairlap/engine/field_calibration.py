"""What each number of a sampler costs to read, how often it is new, and over what time it is an average."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from fairlap.engine import _native


@dataclass(frozen=True)
class FieldCalibration:
    """As found on this machine. None is unknown, for the reason given; never 0."""

    source: str
    field: str
    lane: str
    calls: int
    call_ns: float | None
    worst_call_ns: float | None
    period_s: float | None
    period_unknown_because: str
    window_s: float | None
    window_unknown_because: str


def field_calibration(native: _native.FieldCalibration, source: _native.TelemetrySource) -> FieldCalibration:
    field = source.fields[native.field]
    return FieldCalibration(
        source=source.name,
        field=field.name,
        lane=field.lane.name,
        calls=native.calls,
        call_ns=known_or_none(native.call_ns),
        worst_call_ns=known_or_none(native.worst_call_ns),
        period_s=known_or_none(native.period.seconds),
        period_unknown_because=native.period.unknown_because,
        window_s=known_or_none(native.window.seconds),
        window_unknown_because=native.window.unknown_because,
    )


def calibration_table(found: Iterable[FieldCalibration]) -> str:
    """One line for each field; what is not known is listed below, once for each reason."""
    reasons: dict[str, int] = {}
    lines = [
        f"{'source':<16} {'field':<32} {'lane':<5} {'call':>10} {'slowest':>10} {'new every':>10} {'average of':>10}"
    ]
    for each in found:
        cells = (
            _length(each.call_ns, "", reasons),
            _length(each.worst_call_ns, "", reasons),
            _length(_ns(each.period_s), each.period_unknown_because, reasons),
            _length(_ns(each.window_s), each.window_unknown_because, reasons),
        )
        name = f"{each.source:<16} {each.field:<32} {each.lane:<5}"
        lines.append(f"{name} {' '.join(f'{cell:>10}' for cell in cells)}")
    return "\n".join([*lines, *(f"({number}) {reason}" for reason, number in reasons.items())])


def known_or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _ns(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e9


def _length(ns: float | None, unknown_because: str, reasons: dict[str, int]) -> str:
    if ns is None:
        reason = unknown_because or "every call failed"
        return f"({reasons.setdefault(reason, len(reasons) + 1)})"
    return f"{ns / 1e6:.1f} ms" if ns >= 1e6 else f"{ns / 1e3:.1f} us"
