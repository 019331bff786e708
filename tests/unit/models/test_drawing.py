"""Arrays come from the seed and their own names, are rounded to the nearest, and are told apart by their hash."""

from __future__ import annotations

import hashlib
import struct

import numpy as np
import pytest
from fairlap.errors import NotAvailable
from fairlap.models.arrays import hash_of
from fairlap.models.draw import draw_inputs, draw_labels, draw_weights, rounded_to_bfloat16
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


FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**126), max_value=2.0**126)


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (1.0, 1.0),
        (1.0 + 2**-8, 1.0),  # halfway, and 1 is the even one
        (1.0 + 3 * 2**-8, 1.0 + 2**-6),
        (1.0 + 2**-8 + 2**-20, 1.0 + 2**-7),
        (-1.0 - 2**-9, -1.0),
        (0.0, 0.0),
    ],
)
def test_a_value_goes_to_the_nearest_bfloat16(value: float, rounded: float) -> None:
    assert rounded_to_bfloat16(np.array([value], np.float32))[0] == rounded


@given(FLOATS)
def test_rounding_moves_by_at_most_half_a_step_and_only_once(value: float) -> None:
    once = rounded_to_bfloat16(np.array([value], np.float32))
    assert abs(float(once[0]) - value) <= max(abs(value) * 2**-8, 1e-40)
    assert once.view(np.uint32)[0] & 0xFFFF == 0
    np.testing.assert_array_equal(rounded_to_bfloat16(once), once)


W = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_the_hash_is_one_that_any_language_can_compute() -> None:
    text = b"b <f4 [1]\n" + struct.pack("<f", 2.5) + b"w <f4 [2, 3]\n" + struct.pack("<6f", 0, 1, 2, 3, 4, 5)
    assert hash_of({"w": W, "b": np.array([2.5], np.float32)}) == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize(
    "other",
    [
        {"v": W},
        {"w": W.astype(np.float64)},
        {"w": W.reshape(3, 2)},
        {"w": W.T},
        {"w": np.negative(W)},
        {"w": np.where(W == 0, -W, W)},
        {"w": np.nextafter(W, np.float32(9))},
        {"w": W, "b": W},
        {},
    ],
)
def test_another_name_type_shape_or_value_gives_another_hash(other: dict[str, np.ndarray]) -> None:
    assert hash_of(other) != hash_of({"w": W})


def test_a_single_number_is_not_a_row_of_one() -> None:
    assert hash_of({"w": np.ones((), np.float32)}) != hash_of({"w": np.ones(1, np.float32)})


def test_order_of_names_byte_order_and_strides_do_not_matter() -> None:
    b = np.zeros((0, 4), np.float32)
    expected = hash_of({"w": W, "b": b})
    assert hash_of({"b": b, "w": np.asfortranarray(W)}) == expected
    assert hash_of({"b": b, "w": W.astype(">f4")}) == expected
    assert hash_of({"b": b, "w": np.repeat(W, 2, axis=1)[:, ::2]}) == expected


def test_skewed_integers_come_as_often_as_their_place_says() -> None:
    shape = ("batch", 200)
    [drawn] = draw_inputs(
        spec_of(inputs=(Tensor("rows", shape, Integers(5, 105, skew=1.0), "int32"),)), 500, 0
    ).values()
    assert (drawn.min(), drawn.max()) == (5, 104)
    shares = np.bincount(drawn.ravel() - 5, minlength=100) / drawn.size
    expected = 1 / np.arange(1, 101)
    assert shares == pytest.approx(expected / expected.sum(), abs=0.004)
