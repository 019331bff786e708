"""How much the samples inside one process depend on each other.

Used for evidence that comes from within one process, where there is nothing but samples: many dependent
samples look like much evidence and are little.
"""

from collections.abc import Sequence

import numpy as np

from .arrays import Floats
from .doubts import DependentSamples
from .errors import OneSample
from .positive import log_of_positive

_FEWEST_SAMPLES = 20


def dependent_samples(samples: Sequence[float] | Floats, whose: str = "process") -> DependentSamples | None:
    """A doubt if Politis and White's block length says that three or more samples hang together."""
    logs = log_of_positive(samples, whose)
    if logs.size < _FEWEST_SAMPLES:
        raise OneSample(f"{whose}: {logs.size} samples cannot show dependence; {_FEWEST_SAMPLES} can")
    if np.ptp(logs) == 0:
        return None
    from arch.bootstrap import optimal_block_length

    length = float(optimal_block_length(logs)["stationary"].iloc[0])
    if length < 3:
        return None
    return DependentSamples(logs.size, max(1, round(logs.size / length)))
