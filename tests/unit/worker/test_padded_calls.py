"""A padded call gives the model zeros after the values, and its answer is cut to the size that the call had."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fairlap.frameworks.contract import Contestant, Unsupported
from fairlap.frameworks.contract_parts.compilation import Compilation
from fairlap.models.arrays import Arrays
from fairlap.models.spec import Spec, Tensor
from fairlap.models.workload import Workload
from fairlap.request.fields.sizes.padding import PaddedSize
from fairlap.scenarios.reading import read_result
from fairlap.worker.padded_calls import padded, require_sizes

SIZES = tuple(PaddedSize({"x": (1, size)}, {"x": (1, 8)}, {"twice": (1, size), "sum": (1,)}) for size in (3, 5, 8))


def bind(arrays: Arrays) -> Callable[[], Any]:
    return lambda: (2 * arrays["x"], arrays["x"].sum(1))


def contestant(**changes: Any) -> Contestant:
    found = Contestant(
        bind=bind,
        done=None,
        outputs=lambda result: {"twice": result[0], "sum": result[1]},
        weights=dict,
        in_force={"threads": "1"},
        compilation=lambda: Compilation(graphs=lambda: 1),
    )
    return replace(found, **changes)


def work(sizes: tuple[PaddedSize, ...]) -> Workload:
    spec = Spec("m", "", (Tensor("x", (1, 8)),), (), (), 0, None, "")
    return Workload(spec, "", 1, "infer", "fp32", {}, {"x": np.zeros((1, 8), np.float32)}, padded=sizes)


def test_an_answer_is_that_of_the_true_size() -> None:
    made = padded(contestant(), work(SIZES))
    for size in (3, 5, 8):
        given = np.arange(1, size + 1, dtype=np.float32)[None]
        call = made.bind({"x": given})
        result = call()
        assert result[0].shape == (1, 8)
        assert not result[0][:, size:].any()
        arrays, _ = read_result(made, call, result, 1.0)
        np.testing.assert_array_equal(arrays["twice"], 2 * given)
        np.testing.assert_array_equal(arrays["sum"], given.sum(1))
    assert made.in_force["padded"] == "3 sizes to 1"


def test_one_padded_size_serves_a_contestant_of_one_size() -> None:
    made = padded(contestant(), work(SIZES))
    assert made.compilation is not None
    any_size = made.compilation().bind
    assert any_size is not None
    assert any_size({"x": np.ones((1, 3), np.float32)})()[0].sum() == 6
    apart = (*SIZES, PaddedSize({"x": (1, 9)}, {"x": (1, 16)}, {"twice": (1, 9), "sum": (1,)}))
    several = padded(contestant(), work(apart)).compilation
    assert several is not None
    assert several().bind is None


def test_without_sizes_nothing_is_padded_and_an_option_that_asks_for_it_is_refused() -> None:
    plain = contestant()
    assert padded(plain, work(())) is plain
    require_sizes({"pad": "8"}, SIZES)
    require_sizes({"mode": "max-autotune"}, ())
    with pytest.raises(Unsupported):
        require_sizes({"bucket": "8"}, ())
