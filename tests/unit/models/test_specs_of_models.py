"""What every model of ours promises, whatever it is. New models are found and tested by themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fairlap.bench_models.environments.environment import ACTIONS
from fairlap.models.arrays import Arrays
from fairlap.models.checks.answer_check import output_errors
from fairlap.models.draw import draw_inputs
from fairlap.models.reference import loss_at, reference_answers
from fairlap.models.registry import find
from fairlap.models.spec import BATCH, Constant, Uniform, Weight
from fairlap.models.workload import Workload
from workloads_of_models import our_models, quick_models, workload_of

_MOST_MOVED = 50  # weights; of more, every few
# Those that generate, and one of which the reference's gradients would take tens of gibibytes.
INFERS_ONLY = {
    "gpt2_decode",
    "gpt2_generate",
    "characters_generate",
    "ddim",
    "t5_generate:tiny",
    "t5_generate:small",
    "unet3d:base",
}


@pytest.mark.parametrize("model", our_models())
def test_the_weights_add_up_to_the_published_parameter_count(model: str) -> None:
    spec = find(model).spec
    assert spec.trained_parameters() == spec.parameters


@pytest.mark.parametrize("model", our_models())
def test_a_spec_is_called_what_its_folder_is_called_and_says_where_its_size_was_published(model: str) -> None:
    spec = find(model).spec
    assert spec.name == model
    assert spec.published
    assert spec.task


@pytest.mark.parametrize("model", our_models())
def test_names_are_unique_and_every_tensor_has_the_batch_in_front(model: str) -> None:
    """Actions have it after the steps of an environment, which are taken one after the other."""
    spec = find(model).spec
    names = [weight.name for weight in spec.weights]
    names += [tensor.name for tensor in (*spec.inputs, *spec.outputs)]
    assert len(names) == len(set(names))
    for tensor in (*spec.inputs, *spec.outputs):
        assert tensor.shape.index(BATCH) == (tensor.name == ACTIONS)


@pytest.mark.parametrize("model", our_models())
def test_no_weight_is_the_same_all_over(model: str) -> None:
    """Such a weight could be left out or turned around without changing an answer."""
    assert all(_varies(weight) for weight in find(model).spec.weights)


@pytest.mark.parametrize("model", our_models())
def test_a_model_has_gradients_exactly_when_it_has_trained_weights_and_does_not_only_infer(model: str) -> None:
    spec = find(model).spec
    learns = any(weight.trained for weight in spec.weights) and model not in INFERS_ONLY
    assert (not {"grad", "solve-grad"}.isdisjoint(spec.modes) if spec.weights else "grad" in spec.modes) == learns


@pytest.mark.slow_but(
    "anomaly",
    "attention",
    "callable",
    "conv2d",
    "convnet",
    "digits",
    "empty",
    "gemm",
    "gnn",
    "layernorm",
    "lstm",
    "mlp",
    "mnist",
    "softmax",
    "tabular",
    "tcn",
    "triad",
    "ds_cnn",
)
@pytest.mark.parametrize("model", quick_models())
def test_a_weight_out_of_place_is_visible_in_the_answer(model: str) -> None:
    """The bias of keys adds the same to all scores of a query, which their softmax does not show."""
    work = workload_of(model)
    right = reference_answers(work)
    tolerance = work.spec.tolerances["fp32"]
    few = 1 + len(work.spec.weights) // _MOST_MOVED
    for weight in (each for each in work.spec.weights[::few] if not each.name.endswith(".key.bias")):
        array = work.weights[weight.name]
        moved = np.roll(array, 1) if array.size > 1 else -array
        wrong = reference_answers(_with(work, weights={**work.weights, weight.name: moved}))
        assert not all(output_errors(name, wrong[name], right[name], tolerance).right for name in right), weight.name


@pytest.mark.parametrize("model", quick_models())
def test_changed_inputs_change_the_answer(model: str) -> None:
    work = workload_of(model)
    right = reference_answers(work)
    changed = reference_answers(_with(work, inputs=draw_inputs(work.spec, 2, seed=1)))
    tolerance = work.spec.tolerances["bf16"]
    assert not any(output_errors(name, changed[name], right[name], tolerance).right for name in right)


@pytest.mark.parametrize("model", [each for each in quick_models() if "grad" in find(each.values[0]).spec.modes])
def test_the_loss_is_a_number_of_order_one(model: str) -> None:
    work = workload_of(model, mode="grad")
    answers = reference_answers(work)
    assert list(answers) == ["loss"]
    assert answers["loss"].shape == ()
    assert 0.01 < float(answers["loss"]) < 100
    assert float(answers["loss"]) == pytest.approx(loss_at(work, work.weights, work.inputs), rel=1e-4)


def _varies(weight: Weight) -> bool:
    fill = weight.fill
    if isinstance(fill, Constant):
        return False
    return fill.low < fill.high if isinstance(fill, Uniform) else getattr(fill, "std", 1.0) > 0


def _with(work: Workload, **changes: Arrays | int) -> Workload:
    return replace(work, **changes)  # type: ignore[arg-type]
