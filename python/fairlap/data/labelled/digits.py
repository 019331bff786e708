"""Handwritten digits of 8 by 8 pixels, which come with scikit-learn."""

from __future__ import annotations

import numpy as np

from fairlap.data.labelled.labelled_set import LabelledSet, parted
from fairlap.errors import InvalidRequest
from fairlap.machine.variables import variables_kept


def digits() -> LabelledSet:
    try:
        with variables_kept():
            from sklearn.datasets import load_digits
    except ModuleNotFoundError:
        raise InvalidRequest(
            "the digits come with scikit-learn, which is not installed: pip install 'fairlap[metrics]'", code="E_DATA"
        ) from None
    images, labels = load_digits(return_X_y=True)
    image = (images / 16.0).reshape(-1, 1, 8, 8).astype(np.float32)
    origin = "1,797 handwritten digits of the UCI repository, as in scikit-learn (CC BY 4.0)"
    return parted({"image": image}, labels.astype(np.int32), origin)
