"""Weights are found in a program by their bytes, in the layouts that kernels take."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.frameworks.executorch import read_back, weights_in

RNG = np.random.default_rng(1)
KERNEL = RNG.standard_normal((8, 4, 3, 3), dtype=np.float32)
GIVEN = {
    "linear": RNG.standard_normal((8, 5), dtype=np.float32),
    "kernel": KERNEL,
    "bias": RNG.standard_normal(8, dtype=np.float32),
}


def program_with(kernel: bytes) -> bytes:
    return b"\0header\0" + GIVEN["bias"].tobytes() + b"\0" + kernel + b"\0\0\0" + GIVEN["linear"].tobytes()


@pytest.mark.parametrize("layout", [(0, 1, 2, 3), (0, 2, 3, 1), (1, 2, 3, 0)])
def test_every_weight_is_found_bit_for_bit_in_the_spec_s_layout(layout: tuple[int, ...]) -> None:
    found = weights_in(program_with(KERNEL.transpose(layout).tobytes()), GIVEN)
    assert found.keys() == GIVEN.keys()
    for name, weight in GIVEN.items():
        assert found[name].flags.c_contiguous
        assert np.array_equal(found[name], weight)
    assert read_back(found, GIVEN).startswith("found by value")


def test_a_weight_that_differs_in_one_element_is_not_found() -> None:
    wrong = KERNEL.copy()
    wrong[3, 1, 1, 2] = np.nextafter(wrong[3, 1, 1, 2], np.float32(9))
    found = weights_in(program_with(wrong.tobytes()), GIVEN)
    assert "kernel" not in found
    assert read_back(found, GIVEN).partition(":")[2].startswith(" kernel")
