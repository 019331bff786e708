"""Two hidden layers of 64 units with ReLU. It learns the classes or the values of a table."""

from __future__ import annotations

from itertools import pairwise

from fairlap.errors import InvalidRequest
from fairlap.models.spec import LEARNS, Constant, Normal, Spec, Tensor, Uniform, Weight
from fairlap.request.fields.data.training_data import ItemSizes
from fairlap.request.fields.training import Sgd, Training

HIDDEN = (64, 64)
LAYERS = ("first", "second", "third")
BREAST_CANCER = ItemSizes((30,), 2)
CLASSES, VALUES = Training(Sgd(lr=0.05, momentum=0.9)), Training(Sgd(lr=0.01, momentum=0.9))


def sized_for(sizes: ItemSizes) -> Spec:
    if len(sizes.item) != 1:
        raise InvalidRequest(
            f"tabular learns tables; an item of this data has the shape {list(sizes.item)}", code="E_DATA"
        )
    outputs = 1 if sizes.classes is None else sizes.classes
    widths = (sizes.item[0], *HIDDEN, outputs)
    matrices = sum(inward * outward for inward, outward in pairwise(widths))
    return Spec(
        name="tabular",
        task="learning a table",
        inputs=(Tensor("features", ("batch", sizes.item[0])),),
        outputs=(Tensor("answers", ("batch", outputs), Constant(0.0)),),
        weights=tuple(
            weight
            for name, (inward, outward) in zip(LAYERS, pairwise(widths), strict=True)
            for weight in (
                Weight(f"{name}.weight", (outward, inward), Normal((2 / inward) ** 0.5)),
                Weight(f"{name}.bias", (outward,), Uniform(-0.1, 0.1)),
            )
        ),
        parameters=matrices + sum(widths[1:]),
        gmacs_per_item=matrices / 1e9,
        published="arithmetic: the sizes of its layers",
        loss="square_error" if sizes.classes is None else "cross_entropy",
        modes=LEARNS,
        training=VALUES if sizes.classes is None else CLASSES,
        default_batch=32,
        data_set="breast_cancer",
    )


SPEC = sized_for(BREAST_CANCER)
