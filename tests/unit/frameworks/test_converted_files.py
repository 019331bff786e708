"""Converted files: an incomplete one is converted again, and the weights in one are found by their values."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.frameworks.adapter_parts import litert_files
from fairlap.frameworks.adapter_parts.litert_files import converted_file
from fairlap.frameworks.runtimes.executorch import read_back as read_back_of_program
from fairlap.frameworks.runtimes.executorch import weights_in as weights_in_program
from fairlap.frameworks.runtimes.litert import read_back, weights_in
from fairlap.models.workload import Workload
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.request.work import Work


@pytest.mark.parametrize(
    "harm",
    [
        lambda file: os.truncate(file, 3),
        Path.unlink,
        lambda file: file.with_suffix(".bytes").unlink(),
        lambda file: os.truncate(file.with_suffix(".bytes"), 0),
    ],
)
def test_an_incomplete_file_is_converted_again_and_a_complete_one_is_kept(
    harm: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def convert(_work: Workload, _weights: Path, file: Path) -> None:
        file.write_bytes(b"converted")

    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path))
    monkeypatch.setattr(litert_files, "_convert", convert)
    monkeypatch.setattr(litert_files, "version", lambda _package: "1")
    work = materials_for(Work("mlp", 2), 0).workload("inputs")
    file, kept = converted_file(work)
    assert not kept
    assert converted_file(work) == (file, True)
    harm(file)
    assert converted_file(work) == (file, False)
    assert file.read_bytes() == b"converted"
    assert converted_file(work) == (file, True)


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


def test_every_weight_of_a_litert_file_is_found_bit_for_bit_in_the_spec_s_layout() -> None:
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


def test_a_weight_that_differs_in_one_element_is_not_found_in_a_litert_file() -> None:
    wrong = KERNEL.transpose(0, 2, 3, 1).copy()
    wrong[3, 1, 1, 2] = np.nextafter(wrong[3, 1, 1, 2], np.float32(9))
    found = weights_in(FakeInterpreter([*CONVERTED[:2], wrong, *CONVERTED[3:]]), GIVEN)
    assert found.keys() == GIVEN.keys() - {"kernel"}
    assert read_back(found, GIVEN).count("4 of 5") == 1


def test_an_input_that_happens_to_equal_a_weight_is_no_weight() -> None:
    assert weights_in(FakeInterpreter([]), {"bias": BIAS}) == {}


IN_PROGRAM = {"linear": LINEAR, "kernel": KERNEL, "bias": BIAS}


def program_with(kernel: bytes) -> bytes:
    return b"\0header\0" + IN_PROGRAM["bias"].tobytes() + b"\0" + kernel + b"\0\0\0" + IN_PROGRAM["linear"].tobytes()


@pytest.mark.parametrize("layout", [(0, 1, 2, 3), (0, 2, 3, 1), (1, 2, 3, 0)])
def test_every_weight_of_a_program_is_found_bit_for_bit_in_the_spec_s_layout(layout: tuple[int, ...]) -> None:
    found = weights_in_program(program_with(KERNEL.transpose(layout).tobytes()), IN_PROGRAM)
    assert found.keys() == IN_PROGRAM.keys()
    for name, weight in IN_PROGRAM.items():
        assert found[name].flags.c_contiguous
        assert np.array_equal(found[name], weight)
    assert read_back_of_program(found, IN_PROGRAM).startswith("found by value")


def test_a_weight_that_differs_in_one_element_is_not_found_in_a_program() -> None:
    wrong = KERNEL.copy()
    wrong[3, 1, 1, 2] = np.nextafter(wrong[3, 1, 1, 2], np.float32(9))
    found = weights_in_program(program_with(wrong.tobytes()), IN_PROGRAM)
    assert "kernel" not in found
    assert read_back_of_program(found, IN_PROGRAM).partition(":")[2].startswith(" kernel")
