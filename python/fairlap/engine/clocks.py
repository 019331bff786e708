"""The CPU clocks of this machine."""

from __future__ import annotations

from fairlap.engine import _native
from fairlap.errors import InvalidRequest, NotAvailable, shown


def clock_named(source: str = "auto") -> _native.Clock:
    """Open the best trusted clock, or the one named: "tsc" (x86), "cntvct" (Arm) or "monotonic_raw"."""
    if not isinstance(source, str) or not (source.isascii() and source.isprintable()):
        raise InvalidRequest(f"clock must be the name of a source, not {shown(source)}")
    try:
        return _native.clock(source)
    except ValueError as error:
        raise InvalidRequest(str(error)) from None
    except _native.ClockSourceUnavailable as error:
        raise NotAvailable(str(error)) from None
