"""Models whose sizes are those of the data that they learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.models.draw import draw_inputs, draw_labels, draw_weights
from fairlap.models.registry import find, follows_data, spec_at
from fairlap.models.workload import Workload
from fairlap.request.training_data import ItemSizes

OWN = {"digits": ItemSizes((1, 8, 8), 10), "tabular": ItemSizes((30,), 2)}
OTHERS = [
    ("tabular", ItemSizes((10,), None)),
    ("tabular", ItemSizes((1,), 7)),
    ("digits", ItemSizes((3, 11, 7), 4)),
    ("digits", ItemSizes((1, 1, 1), 2)),
    ("digits", ItemSizes((3, 32, 32), None)),
]


@pytest.mark.parametrize("model", OWN)
def test_with_its_own_sizes_it_is_the_model_that_is_listed(model: str) -> None:
    found = find(model)
    assert follows_data(found.package)
    assert find(model, OWN[model]).spec == found.spec == spec_at(found.package, OWN[model])


def test_a_model_of_fixed_sizes_follows_no_data() -> None:
    assert not follows_data(find("mlp").package)


@pytest.mark.parametrize(("model", "sizes"), OTHERS)
def test_inputs_and_outputs_have_the_sizes_of_the_data(model: str, sizes: ItemSizes) -> None:
    spec = find(model, sizes).spec
    outputs = 1 if sizes.classes is None else sizes.classes
    assert spec.inputs[0].sized(5) == (5, *sizes.item)
    assert spec.outputs[0].sized(5) == (5, outputs)
    assert spec.loss == ("square_error" if sizes.classes is None else "cross_entropy")
    assert spec.parameters == sum(math.prod(weight.shape) for weight in spec.weights)
    labels = draw_labels(spec, 5, 0)
    assert labels is not None
    assert labels.shape == ((5, 1) if sizes.classes is None else (5,))


@pytest.mark.parametrize(("model", "sizes"), OTHERS)
def test_the_reference_answers_in_these_sizes(model: str, sizes: ItemSizes) -> None:
    found = find(model, sizes)
    weights, inputs = draw_weights(found.spec, 0), draw_inputs(found.spec, 5, 0)
    forward = Workload(found.spec, found.package, 5, "infer", "fp32", weights, inputs).implementation_of_reference()
    answer = forward.forward(weights, inputs)[found.spec.outputs[0].name]
    assert answer.shape == found.spec.outputs[0].sized(5)
    assert np.isfinite(answer).all()


@pytest.mark.parametrize(("model", "item"), [("tabular", (1, 8, 8)), ("digits", (30,)), ("digits", (8, 8))])
def test_data_that_a_model_cannot_take_are_refused(model: str, item: tuple[int, ...]) -> None:
    with pytest.raises(InvalidRequest) as raised:
        find(model, ItemSizes(item, 2))
    assert raised.value.code == "E_DATA"
