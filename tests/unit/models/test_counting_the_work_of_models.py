"""The published multiply-accumulates of small models are those that their references really do."""

from __future__ import annotations

from typing import Any

import fairlap.bench_models.bert_base.spec as bert_base
import numpy as np
import pytest
from fairlap.bench_models.bert_base.reference import apply_layer
from fairlap.models.registry import find
from workloads_of_models import workload_of


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
    "model", ["attention", "characters", "conv2d", "gemm", "gpt2_decode", "gpt2_prefill", "mlp", "mnist", "tabular"]
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
