"""Calls at another batch: work of another size and what fails are reported, and others can still be asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from fairlap.frameworks.contract import Contestant
from fairlap.frameworks.contract_parts.compilation import Compilation, Operators
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays
from fairlap.models.spec import Spec, Tensor
from fairlap.models.workload import Workload
from fairlap.scenarios.untimed.compilation import CompilationCalls
from fairlap.scenarios.untimed.compilation_messages import Resize, Resized

SPEC = Spec("doubling", "", (Tensor("x", ("batch", 3)),), (Tensor("y", ("batch", 3)),), (), 0, None, "")


def work(batch: int = 2) -> Workload:
    inputs = {"x": np.ones((batch, 3), np.float32)}
    return Workload(SPEC, "doubling", batch, "infer", "fp32", {}, inputs)


def calls_of(bind: Callable[[Arrays], Callable[[], Any]], **parts: Any) -> CompilationCalls:
    """Of a contestant that takes any batch through ``bind``."""

    def prepared(_work: Workload) -> Contestant:
        return Contestant(
            bind=lambda inputs: lambda: 2 * inputs["x"],
            done=None,
            outputs=lambda result: {"y": result},
            weights=dict,
            in_force={},
            compilation=lambda: Compilation(bind=bind, **parts),
        )

    return CompilationCalls(prepared(work()), work(), prepared)


def at(calls: CompilationCalls, batch: int, folder: Path) -> Resized:
    file = folder / f"{batch}.safetensors"
    safetensors.write(file, {"x": np.ones((batch, 3), np.float32)})
    return calls.resize(Resize(batch, str(file)))


def test_an_answer_of_another_size_is_no_call_at_this_batch(tmp_path: Path) -> None:
    found = at(calls_of(lambda _inputs: lambda: np.ones((2, 3), np.float32)), 5, tmp_path)
    assert found.call_s is None
    assert "[2, 3]" in found.why
    assert "[5, 3]" in found.why


def test_what_fails_at_one_batch_is_reported_and_the_next_one_is_called(tmp_path: Path) -> None:
    def bind(inputs: Arrays) -> Callable[[], Any]:
        if len(inputs["x"]) == 5:
            raise ValueError("five is too many")
        return lambda: 2 * inputs["x"]

    calls = calls_of(bind)
    assert "ValueError: five is too many" in at(calls, 5, tmp_path).why
    found = at(calls, 7, tmp_path)
    assert (found.why, found.compiled) == ("", None)
    assert found.call_s is not None


def test_an_exception_in_the_call_is_quoted_as_it_was_raised(tmp_path: Path) -> None:
    def raising() -> Any:
        raise RuntimeError("no kernel for this size")

    assert "RuntimeError: no kernel for this size" in at(calls_of(lambda _inputs: raising), 5, tmp_path).why


def test_counts_that_cannot_be_read_are_absent_with_the_reason_and_the_others_stay() -> None:
    def operators() -> Operators:
        raise KeyError("layerType")

    described = calls_of(lambda inputs: lambda: inputs["x"], graphs=lambda: 3, operators=operators).describe()
    assert (described.graphs, described.operators) == (3, None)
    assert "KeyError" in described.absent["operators"]
    assert described.takes_any_batch
