"""Weights are found in a converted file by their values, in whatever order the file has their axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.frameworks.litert import read_back, weights_in

RNG = np.random.default_rng(1)
LINEAR = RNG.standard_normal((8, 5), dtype=np.float32)
SQUARE = RNG.standard_normal((6, 6), dtype=np.float32)
KERNEL = RNG.standard_normal((8, 4, 3, 3), dtype=np.float32)
DEPTHWISE = RNG.standard_normal((8, 1, 3, 3), dtype=np.float32)
BIAS = RNG.standard_normal(8, dtype=np.float32)
GIVEN = {"linear": LINEAR, "square": SQUARE, "kernel": KERNEL, "depthwise": DEPTHWISE, "bias": BIAS}
CONVERTED = [LINEAR.T, SQUARE.T, KERNEL.transpose(0, 2, 3, 1), DEPTHWISE.transpose(1, 2, 3, 0), BIAS]


class FakeInterpreter:
    """As LiteRT's: the first tensor is the input, the last an intermediate result without memory."""

    def __init__(self, constants: list[npt.NDArray[Any]]) -> None:
        self.tensors: list[npt.NDArray[Any] | None] = [BIAS.copy(), *(np.ascontiguousarray(c) for c in constants), None]

    def get_input_details(self) -> list[dict[str, Any]]:
        return [{"index": 0}]

    def get_output_details(self) -> list[dict[str, Any]]:
        return []

    def get_tensor_details(self) -> list[dict[str, Any]]:
        return [{"index": index, "dtype": np.float32} for index in range(len(self.tensors))]

    def tensor(self, index: int) -> Callable[[], npt.NDArray[Any]]:
        def look() -> npt.NDArray[Any]:
            held = self.tensors[index]
            if held is None:
                raise ValueError("Tensor data is null")
            return held

        return look


def test_every_weight_is_found_bit_for_bit_in_the_spec_s_layout() -> None:
    found = weights_in(FakeInterpreter(CONVERTED), GIVEN)
    assert found.keys() == GIVEN.keys()
    for name, weight in GIVEN.items():
        assert found[name].shape == weight.shape
        assert found[name].flags.c_contiguous
        assert np.array_equal(found[name], weight)
    assert read_back(found, GIVEN).startswith("found by value")


def test_what_is_found_is_a_copy_so_that_the_interpreter_can_run() -> None:
    interpreter = FakeInterpreter(CONVERTED)
    found = weights_in(interpreter, GIVEN)
    assert not any(np.shares_memory(array, held) for array in found.values() for held in interpreter.tensors[:-1])


def test_a_weight_that_differs_in_one_element_is_not_found() -> None:
    wrong = KERNEL.transpose(0, 2, 3, 1).copy()
    wrong[3, 1, 1, 2] = np.nextafter(wrong[3, 1, 1, 2], np.float32(9))
    found = weights_in(FakeInterpreter([*CONVERTED[:2], wrong, *CONVERTED[3:]]), GIVEN)
    assert found.keys() == GIVEN.keys() - {"kernel"}
    assert read_back(found, GIVEN).count("4 of 5") == 1


def test_an_input_that_happens_to_equal_a_weight_is_no_weight() -> None:
    assert weights_in(FakeInterpreter([]), {"bias": BIAS}) == {}
