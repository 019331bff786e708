"""The one door through which measured figures enter: finite, positive, and then their logarithm."""

from collections.abc import Sequence

import numpy as np

from .arrays import Floats
from .errors import NotFinite, NotPositive


def log_of_positive(figures: Sequence[float] | Floats, whose: str) -> Floats:
    """Return the logarithms, or say which figure of whom has none."""
    values = np.asarray(figures, dtype=np.float64)
    finite = np.isfinite(values)
    if not finite.all():
        place = int(np.argmin(finite))
        found = f"{whose}: figure {place + 1} is {values.flat[place]}"
        raise NotFinite(f"{found}; leave out what was not measured")
    if (values <= 0).any():
        place = int(np.argmax(values <= 0))
        found = f"{whose}: figure {place + 1} is {values.flat[place]}"
        raise NotPositive(f"{found}; a ratio needs figures above zero")
    return np.log(values)
