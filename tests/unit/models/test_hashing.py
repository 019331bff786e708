"""The hash tells arrays apart by all that makes them different, and by nothing else."""

from __future__ import annotations

import hashlib
import struct

import numpy as np
import pytest
from fairlap.models.arrays import hash_of

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
