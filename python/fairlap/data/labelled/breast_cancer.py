"""Cells of breast tumours, measured in images: malignant or benign."""

from __future__ import annotations

import numpy as np

from fairlap.data.labelled.from_scikit_learn import loaded
from fairlap.data.labelled.items import Items


def breast_cancer() -> Items:
    found = loaded("breast_cancer")
    return Items(
        {"features": np.asarray(found.data, np.float64)},
        found.target.astype(np.int32),
        tuple(map(str, found.target_names)),
        "Breast Cancer Wisconsin (Diagnostic); UCI repository, in scikit-learn",
        "not stated by scikit-learn; see UCI",
    )
