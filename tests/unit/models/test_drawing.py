"""Weights, inputs and labels come from the seed and the array's own name, and from nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.errors import NotAvailable
from fairlap.models.arrays import hash_of
from fairlap.models.draw import draw_inputs, draw_labels, draw_weights
from fairlap.models.registry import find
from fairlap.models.spec import Constant, Fill, Integers, Normal, Spec, Tensor, Uniform, Weight
from hypothesis import given
from hypothesis import strategies as st


def spec_of(*weights: Weight, inputs: tuple[Tensor, ...] = (), loss: str = "mean_square") -> Spec:
    outputs = (Tensor("scores", ("batch", 7, 5)),)
    return Spec("any", "any", inputs, outputs, weights, 0, None, "nowhere", loss=loss)  # type: ignore[arg-type]


def weight(name: str, fill: Fill | None = None) -> Weight:
    return Weight(name, (40, 50), fill or Normal(1.0))


@given(st.integers(0, 2**63), st.integers(0, 2**63))
def test_the_same_seed_draws_the_same_and_another_seed_another(first: int, second: int) -> None:
    spec = spec_of(weight("w"))
    same = hash_of(draw_weights(spec, first)) == hash_of(draw_weights(spec, second))
    assert same == (first == second)


def test_a_further_weight_changes_no_other() -> None:
    alone = draw_weights(spec_of(weight("w")), 3)["w"]
    beside = draw_weights(spec_of(weight("before"), weight("w"), weight("after")), 3)
    np.testing.assert_array_equal(alone, beside["w"])
    assert not np.array_equal(beside["before"], beside["after"])


def test_an_input_and_a_weight_of_one_name_are_not_the_same() -> None:
    spec = spec_of(weight("x"), inputs=(Tensor("x", ("batch", 50)),))
    assert not np.array_equal(draw_weights(spec, 0)["x"], draw_inputs(spec, 40, 0)["x"])


@pytest.mark.parametrize(
    ("fill", "low", "high", "mean", "std"),
    [
        (Normal(0.5, mean=2.0), -1.0, 5.0, 2.0, 0.5),
        (Uniform(0.5, 1.5), 0.5, 1.5, 1.0, 12**-0.5),
        (Integers(0, 3), 0.0, 2.0, 1.0, (2 / 3) ** 0.5),
        (Constant(0.25), 0.25, 0.25, 0.25, 0.0),
    ],
)
def test_a_fill_has_the_spread_it_says(fill: Fill, low: float, high: float, mean: float, std: float) -> None:
    drawn = draw_weights(spec_of(weight("w", fill)), 1)["w"]
    assert drawn.dtype == np.float32
    assert drawn.shape == (40, 50)
    assert low <= drawn.min()
    assert drawn.max() <= high
    assert drawn.mean() == pytest.approx(mean, abs=0.06)
    assert drawn.std() == pytest.approx(std, abs=0.05)


def test_inputs_have_the_batch_and_the_type_of_their_spec() -> None:
    tokens = Tensor("tokens", ("batch", 128), Integers(0, 1000), "int32")
    drawn = draw_inputs(spec_of(inputs=(tokens, Tensor("x", ("batch", 2)))), 6, 0)
    assert [(str(array.dtype), array.shape) for array in drawn.values()] == [("int32", (6, 128)), ("float32", (6, 2))]
    assert 0 <= drawn["tokens"].min() <= drawn["tokens"].max() < 1000


def test_a_batch_that_does_not_fit_into_memory_is_refused() -> None:
    with pytest.raises(NotAvailable) as refused:
        draw_inputs(find("gemm").spec, 2**24, 1)  # 16 TiB
    assert "16777216" in str(refused.value)


def test_labels_are_classes_of_the_first_output_one_for_each_row() -> None:
    labels = draw_labels(spec_of(loss="cross_entropy"), 9, 0)
    assert labels is not None
    assert (str(labels.dtype), labels.shape) == ("int32", (9, 7))
    assert set(labels.reshape(-1).tolist()) == set(range(5))


def test_a_loss_without_classes_has_no_labels() -> None:
    assert draw_labels(spec_of(), 9, 0) is None
