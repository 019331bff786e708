"""What a call has to do at least follows from the spec, and the references do what is published."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import fairlap.bench_models.bert_base.spec as bert_base
import numpy as np
import pytest
from fairlap.bench_models.bert_base.reference import apply_layer
from fairlap.models.call_cost import call_cost
from fairlap.models.registry import find
from fairlap.request.fields.training import AdamW, Sgd, Training
from fairlap.request.work import Work
from workloads_of_models import workload_of


def test_an_inference_multiplies_as_published_and_moves_weights_inputs_and_outputs_once() -> None:
    cost = call_cost(find("gemm").spec, Work("gemm", 3))
    assert cost is not None
    assert cost.operations == 3 * 2 * 512**3
    assert cost.moved_bytes == 4 * 512**2 * (1 + 3 + 3)
    assert cost.working_set_bytes == 4 * 512**2 * (1 + 2 * 3 + 3)


def test_a_triad_moves_twelve_bytes_for_every_two_operations() -> None:
    cost = call_cost(find("triad").spec, Work("triad", 2))
    assert cost is not None
    assert cost.operations is not None
    assert cost.operations / cost.moved_bytes == pytest.approx(2 / 12)


def test_sixteen_bits_move_half_as_much() -> None:
    wide, narrow = (call_cost(find("gemm").spec, Work("gemm", 1, precision=each)) for each in ("fp32", "bf16"))
    assert wide is not None
    assert narrow is not None
    assert narrow.moved_bytes == wide.moved_bytes / 2
    assert narrow.operations == wide.operations


def test_a_gradient_has_three_times_the_operations_and_writes_as_much_as_the_model_learns() -> None:
    spec = find("gemm").spec
    cost = call_cost(spec, Work("gemm", 1, "grad"))
    assert cost is not None
    assert cost.operations == 3 * 2 * 512**3
    assert cost.counted
    assert cost.moved_bytes == 4 * 512**2 * (1 + 1 + 1)


@pytest.mark.parametrize(("optimizer", "kept"), [(Sgd(), 0), (Sgd(momentum=0.9), 1), (AdamW(), 2)])
def test_a_step_also_reads_and_writes_what_the_optimizer_keeps(optimizer: Sgd | AdamW, kept: int) -> None:
    spec = find("mlp").spec
    cost = call_cost(spec, Work("mlp", 1, "train", training=Training(optimizer)))
    assert cost is not None
    gradient = call_cost(spec, Work("mlp", 1, "grad"))
    assert gradient is not None
    assert cost.moved_bytes - gradient.moved_bytes == 4 * spec.parameters * 2 * kept


@pytest.mark.parametrize("counted", [None, 0.0])
def test_a_model_without_counted_operations_has_bytes_only(counted: float | None) -> None:
    cost = call_cost(replace(find("gemm").spec, gmacs_per_item=counted), Work("gemm", 1))
    assert cost is not None
    assert cost.operations is None
    assert cost.counted
    assert cost.moved_bytes == 4 * 512**2 * 3


def test_a_callable_has_no_known_cost() -> None:
    assert call_cost(find("callable").spec, Work("callable", 1)) is None


@pytest.mark.parametrize(("rows", "lookups", "read", "kept"), [(1000, 8, 8, 16), (10, 8, 8, 10), (4, 8, 4, 4)])
def test_a_lookup_has_no_operations_and_reads_only_its_rows(rows: int, lookups: int, read: int, kept: int) -> None:
    name = f"embedding-r{rows}-d32-n{lookups}"
    cost = call_cost(find(name).spec, Work(name, 1))
    assert cost is not None
    assert (cost.operations, cost.counted) == (0.0, "")
    assert cost.moved_bytes == 4 * (32 * read + lookups + 32 * lookups)
    assert cost.working_set_bytes == 4 * (32 * kept + 2 * lookups + 32 * lookups)


def test_operations_of_which_some_are_not_counted_are_absent_and_the_reason_names_the_operators() -> None:
    cost = call_cost(replace(find("gemm").spec, uncounted=("DFT",)), Work("gemm", 1))
    assert cost is not None
    assert cost.operations is None
    assert "DFT" in cost.counted
    assert cost.moved_bytes > 0


class Counted(np.ndarray[Any, Any]):
    """An array that counts the products of every matrix multiplication that it or its offspring takes part in."""

    products = 0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **others: Any) -> Any:
        plain = [_plain(each) for each in inputs]
        if "out" in others:
            others["out"] = tuple(_plain(each) for each in others["out"])
        result = getattr(ufunc, method)(*plain, **others)
        if ufunc is np.matmul:
            Counted.products += result.size * plain[0].shape[-1]
        return result.view(Counted) if isinstance(result, np.ndarray) else result


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Counted) else value


@pytest.mark.parametrize(
    "model",
    [
        *("attention", "characters", "conv2d", "gemm", "mlp", "mnist", "tabular"),
        *(pytest.param(model, marks=pytest.mark.slow) for model in ("gpt2_decode", "gpt2_prefill")),
    ],
)
def test_the_reference_multiplies_as_often_as_published(model: str) -> None:
    work = workload_of(model, batch=2)
    Counted.products = 0
    weights = {name: array.view(Counted) for name, array in work.weights.items()}
    work.implementation_of_reference().forward(weights, work.inputs)
    published = find(model).spec.gmacs_per_item
    assert published is not None
    assert Counted.products == round(2 * published * 1e9)


def test_a_layer_of_bert_base_multiplies_as_often_as_its_spec_says() -> None:
    first = bert_base.LAYER_NAMES[0]
    held = [weight for weight in bert_base.SPEC.weights if weight.name.startswith(f"{first}.")]
    weights = {weight.name: np.ones(weight.shape, np.float32).view(Counted) for weight in held}
    hidden = np.ones((2, bert_base.LENGTH, bert_base.HIDDEN), np.float32).view(Counted)
    Counted.products = 0
    apply_layer(weights, first, hidden, np.ones((2, 1, 1, bert_base.LENGTH), bool))
    assert Counted.products == 2 * bert_base.macs_per_layer()
