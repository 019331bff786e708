"""Handwritten digits of 8 by 8 pixels."""

from __future__ import annotations

import numpy as np

from fairlap.data.labelled.from_scikit_learn import loaded
from fairlap.data.labelled.items import Items


def digits() -> Items:
    found = loaded("digits")
    return Items(
        {"image": (found.data / 16.0).reshape(-1, 1, 8, 8).astype(np.float32)},
        found.target.astype(np.int32),
        tuple(map(str, range(10))),
        "handwritten digits of 8 by 8 pixels; UCI repository, in scikit-learn",
        "CC BY 4.0",
    )
