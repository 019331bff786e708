"""The progress of diabetes after a year, a value, by ten measurements of each patient."""

from __future__ import annotations

import numpy as np

from fairlap.data.labelled.from_scikit_learn import loaded
from fairlap.data.labelled.items import Items


def diabetes() -> Items:
    found = loaded("diabetes", scaled=False)  # as published, so that every machine has the same numbers
    return Items(
        {"features": np.asarray(found.data, np.float64)},
        np.asarray(found.target, np.float64).reshape(-1, 1),
        origin="442 patients of Efron, Hastie, Johnstone and Tibshirani (2004); in scikit-learn",
        licence="not stated by scikit-learn",
    )
