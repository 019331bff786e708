"""Batch normalisation of a JAX function in training, against loops by hand with flax and optax in float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machine_marks import needed

jax = needed("jax")
optax = pytest.importorskip("optax", reason="`make test` installs it and runs this")

from fairlap.errors import FairlapError  # noqa: E402
from fairlap.models.sources.python_models.jax_source import named_leaves  # noqa: E402
from fairlap.models.training.reference import WEIGHT  # noqa: E402
from fairlap.request.fields.training import AdamW, Sgd, Training  # noqa: E402
from learning_sources import SUPPORT, OpenedHere, opened_here  # noqa: E402

pytestmark = pytest.mark.slow

OPTIMIZERS: list[tuple[Sgd | AdamW, Any]] = [
    (Sgd(lr=0.1, momentum=0.9), optax.sgd(0.1, momentum=0.9)),
    (AdamW(lr=0.01, decay=0.1), optax.adamw(0.01, weight_decay=0.1)),
]


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SUPPORT))


def in_float64(tree: Any) -> Any:
    return jax.tree.map(lambda each: jax.numpy.asarray(each, np.float64), tree)


def require_as_by_hand(found: OpenedHere, variables: Any, learnt: str, training: Any) -> None:
    """Train by optax what is under ``learnt`` in the variables, and move the rest as ``training`` returns it."""
    moved_name = next(name for name in variables if name != learnt)
    assert {each.name.partition(".")[0] for each in found.bundle.spec.weights if each.trained} == {learnt}
    assert {each.name.partition(".")[0] for each in found.bundle.spec.weights if not each.trained} == {moved_name}
    assert found.bundle.no_training == ""
    batch, other = found.batch(), found.batch("changed")
    for asked, optimizer in OPTIMIZERS:
        got = found.exercise(Training(asked), batch, other, batch).taken()
        with jax.enable_x64(True):
            params, stats = in_float64(variables[learnt]), in_float64(variables[moved_name])
            state = optimizer.init(params)

            def loss(params: Any, stats: Any, image: Any, labels: Any) -> Any:
                stats = jax.tree.map(jax.numpy.asarray, stats)  # made in this trace, which flax.nnx asks for
                scores, moved = training({learnt: params, moved_name: stats}, image)
                return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean(), moved[moved_name]

            for each in (batch, other, batch):
                [image] = in_float64(list(each.inputs.values()))
                gradients, stats = jax.grad(loss, has_aux=True)(params, stats, image, each.labels)
                updates, state = optimizer.update(gradients, state, params)
                params = optax.apply_updates(params, updates)
            expected = named_leaves({learnt: params, moved_name: stats})
        assert set(expected) == {each.name for each in found.bundle.spec.weights}
        for name, array in expected.items():
            assert array.dtype == np.float64
            np.testing.assert_allclose(got[WEIGHT + name], array, rtol=1e-6, atol=1e-9, err_msg=name)
            assert not np.array_equal(got[WEIGHT + name], found.weights[name])


def test_a_function_for_training_moves_its_averages(tmp_path: Path) -> None:
    import own_jax_nets

    found = opened_here("own_jax_nets:normalised", "cross_entropy", tmp_path)
    _, variables, _, training = own_jax_nets.normalised()
    require_as_by_hand(found, variables, "params", training)
    assert found.bundle.routes["tensorflow"].why_not_in("fp32", "train") == ""


@pytest.mark.parametrize(("name", "learnt"), [("in_linen", "params"), ("in_nnx", "params")])
def test_steps_of_flax_are_those_of_a_loop_with_optax(name: str, learnt: str, tmp_path: Path) -> None:
    pytest.importorskip("flax", reason="flax is in no extra")
    import own_flax_nets

    found = opened_here(f"own_flax_nets:{name}", "cross_entropy", tmp_path)
    _, variables, _, training = getattr(own_flax_nets, name)()
    require_as_by_hand(found, variables, learnt, training)


@pytest.mark.parametrize("name", ["moves_what_it_lacks", "moves_nothing"])
def test_a_function_for_training_that_returns_something_else_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(FairlapError) as refused:
        opened_here(f"own_jax_nets:{name}", "cross_entropy", tmp_path)
    assert refused.value.code == "E_SOURCE"
    assert "training" in str(refused.value)


def test_gradients_are_of_inference(tmp_path: Path) -> None:
    """Mode grad differentiates the function as it is, with its averages."""
    import own_jax_nets

    found = opened_here("own_jax_nets:normalised", "cross_entropy", tmp_path)
    function, variables, _, _ = own_jax_nets.normalised()
    batch = found.batch()
    with jax.enable_x64(True):
        wide, image = in_float64(variables), in_float64(batch.inputs["image"])

        def loss(params: Any) -> Any:
            scores = function({**wide, "params": params}, image)
            return optax.softmax_cross_entropy_with_integer_labels(scores, batch.labels).mean()

        expected = named_leaves({"params": jax.grad(loss)(wide["params"])})
    weights = {name: array.astype(np.float64) for name, array in found.weights.items()}
    wide_batch = type(batch)({"image": np.asarray(image)}, batch.labels)
    got = found.slopes.slopes(weights, wide_batch, training=False)
    assert set(got.gradients) == set(expected)
    for name, array in expected.items():
        np.testing.assert_allclose(got.gradients[name], array, rtol=1e-9, atol=1e-12)
    assert all(np.array_equal(array, weights[name]) for name, array in got.averages.items())
