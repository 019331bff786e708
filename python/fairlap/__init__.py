"""fairlap times AI frameworks natively and says who is faster, by how much, and whether it is real.

Names are looked up on first use, so that ``import fairlap`` loads neither the engine nor NumPy.
"""

from __future__ import annotations

from fairlap.lazily import lookup

TYPE_CHECKING = False  # Type checkers know the name; importing typing would take most of the import's time.
if TYPE_CHECKING:
    from fairlap.engine import (
        DeviceFailed,
        Measurement,
        MeasurementInProgress,
        NativeFunction,
        Rotate,
        floor,
        measure,
    )
    from fairlap.errors import CallableRaised, FairlapError, NotAvailable, WrongRequest
    from fairlap.in_process.compare import compare
    from fairlap.in_process.comparison import InProcessComparison

__all__ = [
    "CallableRaised",
    "DeviceFailed",
    "FairlapError",
    "InProcessComparison",
    "Measurement",
    "MeasurementInProgress",
    "NativeFunction",
    "NotAvailable",
    "Rotate",
    "WrongRequest",
    "__version__",
    "compare",
    "floor",
    "measure",
]

_HOME = {
    "CallableRaised": "fairlap.errors",
    "FairlapError": "fairlap.errors",
    "NotAvailable": "fairlap.errors",
    "WrongRequest": "fairlap.errors",
    "InProcessComparison": "fairlap.in_process.comparison",
    "compare": "fairlap.in_process.compare",
    "DeviceFailed": "fairlap.engine",
    "Measurement": "fairlap.engine",
    "MeasurementInProgress": "fairlap.engine",
    "NativeFunction": "fairlap.engine",
    "Rotate": "fairlap.engine",
    "floor": "fairlap.engine",
    "measure": "fairlap.engine",
    "__version__": "fairlap.engine",
}


__getattr__ = lookup(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted(__all__)
