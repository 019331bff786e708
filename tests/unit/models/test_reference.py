"""The reference of every model that answers within seconds, and the losses against values worked out by hand."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fairlap.bench_models.bert_base.reference import attention
from fairlap.bench_models.elementary import gelu
from fairlap.models.checks.losses import loss_of
from fairlap.models.reference import answers_in_float32
from fairlap.models.registry import find
from fairlap.models.workload import Workload
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from workloads_of_models import models_that_infer, workload_of

QUICK = [name for name in models_that_infer() if find(name).spec.parameters < 30_000_000]  # answers within seconds


def each(models: Iterable[str]) -> list[Any]:
    """Mark the largest ones, of which each takes as long as all small ones together."""
    large = [name for name in models_that_infer() if (find(name).spec.gmacs_per_item or 0.0) > 0.15]
    return [pytest.param(name, marks=[pytest.mark.slow] if name in large else []) for name in models]


def answers(work: Workload) -> dict[str, np.ndarray]:
    weights = {name: array.astype(np.float64) for name, array in work.weights.items()}
    inputs = {n: a.astype(np.float64) if a.dtype.kind == "f" else a for n, a in work.inputs.items()}
    answer: dict[str, np.ndarray] = work.implementation_of_reference().forward(weights, inputs)
    return answer


@pytest.mark.parametrize("model", each(QUICK))
def test_the_reference_gives_every_output_in_its_shape_and_of_order_one(model: str) -> None:
    work = workload_of(model, batch=1)
    answer = answers(work)
    assert set(answer) == {tensor.name for tensor in work.spec.outputs}
    for tensor in work.spec.outputs:
        assert answer[tensor.name].shape == tensor.sized(1)
        assert answer[tensor.name].dtype == np.float64
        assert 0.01 < float(np.abs(answer[tensor.name]).max()) < 1000


@pytest.mark.parametrize("model", each(QUICK))
def test_items_of_a_batch_do_not_see_each_other(model: str) -> None:
    pair = workload_of(model)
    alone = replace(pair, batch=1, inputs={name: array[:1] for name, array in pair.inputs.items()})
    for name, value in answers(pair).items():
        np.testing.assert_allclose(value[:1], answers(alone)[name], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("model", each(QUICK))
def test_the_reference_stays_in_the_precision_that_it_is_given(model: str) -> None:
    answered = answers_in_float32(workload_of(model, batch=1))
    assert {answer.dtype for answer in answered.values()} == {np.dtype(np.float32)}


def test_attention_and_gelu_stay_in_the_precision_that_they_are_given() -> None:
    tokens = np.ones((1, 2, 4), np.float32)
    assert attention(tokens, tokens, tokens, 2, np.ones((2, 2), bool)).dtype == np.float32
    assert gelu(tokens).dtype == np.float32


def test_listing_models_imports_none() -> None:
    code = (
        "import sys; from fairlap.models.names import workload_names; workload_names();"
        "print([name for name in sys.modules if name.startswith('fairlap.bench_models.')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


@pytest.mark.parametrize("model", each(name for name in QUICK if find(name).spec.parameters))
def test_the_onnx_graph_is_what_its_checker_accepts(model: str) -> None:
    onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
    work = workload_of(model, batch=1)
    onnx.checker.check_model(work.implementation("onnx").build(work.weights, 2), full_check=True)


SCORES = arrays(np.float64, (3, 4), elements=st.floats(-1e4, 1e4))
LABELS = np.array([0, 3, 2], np.int32)


def test_the_mean_square_is_over_all_elements() -> None:
    assert loss_of("mean_square", np.array([[1.0, -2.0], [3.0, 0.0]]), None) == pytest.approx(14 / 4)


def test_the_square_error_is_the_mean_square_of_what_is_missed() -> None:
    labels = np.array([[0.0, -2.0], [1.0, 0.0]], np.float32)
    assert loss_of("square_error", np.array([[1.0, -2.0], [3.0, 0.0]]), labels) == pytest.approx(5 / 4)


def test_cross_entropy_of_level_scores_is_the_logarithm_of_the_classes() -> None:
    assert loss_of("cross_entropy", np.zeros((3, 4)), LABELS) == pytest.approx(math.log(4))


def test_cross_entropy_is_the_mean_of_what_the_right_classes_lack() -> None:
    scores = np.log([[0.5, 0.2, 0.2, 0.1], [0.1, 0.1, 0.1, 0.7], [0.3, 0.3, 0.2, 0.2]])
    assert loss_of("cross_entropy", scores, LABELS) == pytest.approx(-math.log(0.5 * 0.7 * 0.2) / 3)


def test_rows_may_have_several_axes() -> None:
    scores = np.random.default_rng(0).normal(size=(2, 3, 4))
    labels = np.array([[0, 3, 2], [1, 1, 0]], np.int32)
    flat = loss_of("cross_entropy", scores.reshape(6, 4), labels.reshape(6))
    assert loss_of("cross_entropy", scores, labels) == pytest.approx(flat)


@given(SCORES, st.floats(-1e4, 1e4))
def test_cross_entropy_is_never_negative_and_does_not_see_a_shift(scores: np.ndarray, shift: float) -> None:
    loss = loss_of("cross_entropy", scores, LABELS)
    assert 0 <= loss < math.inf
    assert loss_of("cross_entropy", scores + shift, LABELS) == pytest.approx(loss, rel=1e-6, abs=1e-6)


def test_cross_entropy_without_labels_is_refused() -> None:
    with pytest.raises(ValueError, match="labels"):
        loss_of("cross_entropy", np.zeros((3, 4)), None)
