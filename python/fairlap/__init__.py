"""fairlap times AI frameworks natively and says who is faster, by how much, and whether it is real.

Names are looked up on first use, so that ``import fairlap`` loads neither the engine nor NumPy.
"""

from __future__ import annotations

from fairlap.lazily import lookup

TYPE_CHECKING = False  # Type checkers know the name; importing typing would take most of the import's time.
if TYPE_CHECKING:
    from fairlap.comparing import compare, compare_over, load
    from fairlap.engine import DeviceFailed, Measurement, MeasurementInProgress, NativeFunction, Rotate, floor, measure
    from fairlap.engine.measurement import CallableRaised
    from fairlap.errors import FairlapError, InvalidRequest, NotAvailable
    from fairlap.scenarios.callables.axes.result import ComparisonOverAxes
    from fairlap.scenarios.callables.result import InProcessComparison

__all__ = [
    "CallableRaised",
    "ComparisonOverAxes",
    "DeviceFailed",
    "FairlapError",
    "InProcessComparison",
    "InvalidRequest",
    "Measurement",
    "MeasurementInProgress",
    "NativeFunction",
    "NotAvailable",
    "Rotate",
    "__version__",
    "compare",
    "compare_over",
    "floor",
    "load",
    "measure",
]

_HOME = {
    "CallableRaised": "fairlap.engine.measurement",
    "FairlapError": "fairlap.errors",
    "NotAvailable": "fairlap.errors",
    "InvalidRequest": "fairlap.errors",
    "InProcessComparison": "fairlap.scenarios.callables.result",
    "ComparisonOverAxes": "fairlap.scenarios.callables.axes.result",
    "compare": "fairlap.comparing",
    "compare_over": "fairlap.comparing",
    "load": "fairlap.comparing",
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
