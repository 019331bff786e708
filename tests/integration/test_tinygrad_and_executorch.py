"""tinygrad and ExecuTorch, in environments of their own that the race makes for them."""

from __future__ import annotations

import functools

import pytest
from fairlap.request.work import Mode, Precision, Work
from fairlap.scenarios.process_result import ProcessResult
from one_block import processes_of_one_block

pytestmark = [pytest.mark.heavy_environments, pytest.mark.sanitized, pytest.mark.timeout(1800)]

TINYGRAD = ("tinygrad", "tinygrad:jit")
EXECUTORCH = ("executorch", "executorch:portable")
CONTESTANTS = TINYGRAD + EXECUTORCH


@functools.cache
def race(model: str, mode: Mode, precision: Precision, threads: int) -> dict[str, ProcessResult]:
    return processes_of_one_block(",".join(CONTESTANTS), Work(model, 2, mode, precision), threads=threads)


def assert_right(process: ProcessResult) -> None:
    assert process.outcome == "finished", process.message
    assert all(error.right and error.distance < 1e-4 for error in process.errors)
    assert process.in_force["precision"] == "fp32"


@pytest.mark.parametrize("model", ["mlp", "convnet"])
@pytest.mark.parametrize("name", CONTESTANTS)
def test_it_answers_as_the_reference_does(name: str, model: str) -> None:
    assert_right(race(model, "infer", "fp32", 1)[name])


@pytest.mark.parametrize("name", TINYGRAD)
def test_gradients_are_the_slopes_of_the_reference(name: str) -> None:
    assert_right(race("mlp", "grad", "fp32", 1)[name])


@pytest.mark.parametrize("name", CONTESTANTS)
def test_one_thread_is_one_thread(name: str) -> None:
    assert race("mlp", "infer", "fp32", 1)[name].in_force["threads"] == "1"


def test_on_two_threads_executorch_takes_them_and_tinygrad_says_that_it_does_not() -> None:
    processes = race("mlp", "infer", "fp32", 2)
    for name in EXECUTORCH:
        assert processes[name].in_force["threads"] == "2"
    for name in TINYGRAD:
        assert processes[name].in_force["threads"].startswith("1 of 2")


def test_xnnpack_takes_the_model_over_or_nothing_does() -> None:
    processes = race("mlp", "infer", "fp32", 1)
    assert processes["executorch"].in_force["delegates"] == "XnnpackBackend"
    assert processes["executorch:portable"].in_force["delegates"] == "none"


def test_what_they_cannot_do_is_refused_with_the_reason() -> None:
    for name, process in race("mlp", "infer", "bf16", 1).items():
        assert process.outcome == "unsupported"
        assert f"{name.partition(':')[0]} has no bf16 on the CPU: " in process.message
    for name in EXECUTORCH:
        assert "executorch runs models only" in race("mlp", "grad", "fp32", 1)[name].message
