"""fairlap times AI frameworks natively and says who is faster, by how much, and whether it is real.

Names are looked up on first use, so that ``import fairlap`` loads neither the engine nor NumPy.
"""

from __future__ import annotations

from fairlap.lazily import lookup

TYPE_CHECKING = False  # Type checkers know the name; importing typing would take most of the import's time.
if TYPE_CHECKING:
    from fairlap.bisection.bisect import bisect
    from fairlap.bisection.bisection import Bisection
    from fairlap.comparing import choose, compare, compare_over, load
    from fairlap.engine import DeviceFailed, Measurement, MeasurementInProgress, NativeFunction, Rotate, floor, measure
    from fairlap.engine.c_functions import c_function
    from fairlap.engine.measurement import CallableRaised
    from fairlap.errors import FairlapError, InvalidRequest, NotAvailable
    from fairlap.judgement.judge import judge
    from fairlap.judgement.judgement import Judgement
    from fairlap.magics import load_ipython_extension
    from fairlap.results.choice.choice import Choice
    from fairlap.scenarios.callables.axes.result import ComparisonOverAxes
    from fairlap.scenarios.callables.result import InProcessComparison
    from fairlap.store.runs.listed import runs

__all__ = [
    "Bisection",
    "CallableRaised",
    "Choice",
    "ComparisonOverAxes",
    "DeviceFailed",
    "FairlapError",
    "InProcessComparison",
    "InvalidRequest",
    "Judgement",
    "Measurement",
    "MeasurementInProgress",
    "NativeFunction",
    "NotAvailable",
    "Rotate",
    "__version__",
    "bisect",
    "c_function",
    "choose",
    "compare",
    "compare_over",
    "floor",
    "judge",
    "load",
    "load_ipython_extension",
    "measure",
    "runs",
]

_HOME = {
    "Bisection": "fairlap.bisection.bisection",
    "bisect": "fairlap.bisection.bisect",
    "CallableRaised": "fairlap.engine.measurement",
    "c_function": "fairlap.engine.c_functions",
    "FairlapError": "fairlap.errors",
    "NotAvailable": "fairlap.errors",
    "InvalidRequest": "fairlap.errors",
    "InProcessComparison": "fairlap.scenarios.callables.result",
    "Judgement": "fairlap.judgement.judgement",
    "Choice": "fairlap.results.choice.choice",
    "choose": "fairlap.comparing",
    "compare": "fairlap.comparing",
    "judge": "fairlap.judgement.judge",
    "ComparisonOverAxes": "fairlap.scenarios.callables.axes.result",
    "compare_over": "fairlap.comparing",
    "load": "fairlap.comparing",
    "load_ipython_extension": "fairlap.magics",
    "runs": "fairlap.store.runs.listed",
    "DeviceFailed": "fairlap.engine",
    "Measurement": "fairlap.engine",
    "MeasurementInProgress": "fairlap.engine",
    "NativeFunction": "fairlap.engine",
    "Rotate": "fairlap.engine",
    "floor": "fairlap.engine",
    "measure": "fairlap.engine",
    "__version__": "fairlap.version",
}


__getattr__ = lookup(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted(__all__)
