"""Inputs of some models may have another size: the weights stay, and so does the usual size if none is asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fairlap.models.draw import draw_inputs, draw_weights
from fairlap.models.reference import reference_answers
from fairlap.models.registry import find, free_sizes_at, spec_with
from fairlap.models.workload import Workload

USUAL = {
    "convnet": {"image": 64},
    "resnet50": {"image": 224},
    "mobilenet_v2": {"image": 224},
    "gpt2_prefill": {"tokens": 128},
    "bert_base": {"tokens": 128},
}


@pytest.mark.parametrize("name", USUAL)
def test_at_its_usual_size_a_model_is_the_one_that_is_raced(name: str) -> None:
    model = find(name)
    assert set(free_sizes_at(model.package)) == set(USUAL[name])
    assert spec_with(model.package, USUAL[name]) == replace(model.spec, gmacs_per_item=None)


@pytest.mark.parametrize("name", USUAL)
def test_another_size_changes_inputs_and_no_weights(name: str) -> None:
    model = find(name)
    [(size, (least, _))] = free_sizes_at(model.package).items()
    other = spec_with(model.package, {size: least})
    assert other.inputs != model.spec.inputs
    assert other.weights == model.spec.weights


def test_the_reference_answers_at_another_size() -> None:
    model = find("convnet")
    spec = spec_with(model.package, {"image": 8})
    work = Workload(
        spec, model.package, 2, "infer", "fp32", draw_weights(spec, 0), draw_inputs(spec, 2, 0), free_sizes={"image": 8}
    )
    assert reference_answers(work)["logits"].shape == (2, 10)


@pytest.mark.parametrize("name", ["mlp", "gemm-m1-n1-k1", "triad"])
def test_other_models_have_no_size_but_the_batch(name: str) -> None:
    assert free_sizes_at(find(name).package) == {}
