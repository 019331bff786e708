"""Training of a user's JAX function against a loop by hand in float64; which functions and arrays are trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machine_marks import needed

jax = needed("jax")
optax = pytest.importorskip("optax", reason="`make test` installs it and runs this")

from fairlap.errors import FairlapError  # noqa: E402
from fairlap.models.sources.proof import InFloat64  # noqa: E402
from fairlap.models.sources.python_models.jax_source import Params  # noqa: E402
from fairlap.models.training.reference import WEIGHT, Batch  # noqa: E402
from fairlap.request.fields.training import AdamW, Sgd, Training  # noqa: E402
from learning_sources import SUPPORT, opened_here  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def nets(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SUPPORT))
    import own_jax_nets

    return own_jax_nets


OPTIMIZERS: list[tuple[Sgd | AdamW, Any]] = [
    (Sgd(lr=0.1, momentum=0.0), optax.sgd(0.1)),
    (Sgd(lr=0.1, momentum=0.9), optax.sgd(0.1, momentum=0.9)),
    (AdamW(lr=0.01, decay=0.1), optax.adamw(0.01, weight_decay=0.1)),
]


@pytest.mark.parametrize("name", ["convolutional", "recurrent"])
def test_steps_are_those_of_a_loop_with_optax(name: str, nets: Any, tmp_path: Path) -> None:
    found = opened_here(f"own_jax_nets:{name}", "cross_entropy", tmp_path)
    assert all(weight.trained for weight in found.bundle.spec.weights)
    batch = found.batch()
    function, params, _ = getattr(nets, name)()

    def loss(held: Any, inputs: Any) -> Any:
        scores = function(held, *inputs)
        rows = optax.softmax_cross_entropy_with_integer_labels(scores, batch.labels)
        return rows.mean()

    for asked, optimizer in OPTIMIZERS:
        got = found.exercise(Training(asked), *[batch] * 3).taken()
        with jax.enable_x64(True):
            held = jax.tree.map(lambda each: jax.numpy.asarray(each, np.float64), params)
            inputs = [jax.numpy.asarray(each) for each in InFloat64(batch.inputs).values()]
            state = optimizer.init(held)
            for _ in range(3):
                updates, state = optimizer.update(jax.grad(loss)(held, inputs), state, held)
                held = optax.apply_updates(held, updates)
            paths = jax.tree_util.tree_flatten_with_path(held)[0]
        assert len(paths) == len(found.bundle.spec.weights)
        for path, array in paths:
            assert array.dtype == np.float64
            weight = ".".join(step.key for step in path)
            np.testing.assert_allclose(got[WEIGHT + weight], array, rtol=1e-6, atol=1e-9)


def test_what_stop_gradient_cuts_off_is_frozen(tmp_path: Path) -> None:
    bundle = opened_here("own_jax_nets:partly_frozen", "cross_entropy", tmp_path).bundle
    assert {each.name for each in bundle.spec.weights if not each.trained} == {"first.kernel", "first.bias"}
    assert bundle.no_training == ""


def test_a_weight_whose_gradient_is_cut_off_in_part_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FairlapError) as refused:
        opened_here("own_jax_nets:partly_cut_off", "cross_entropy", tmp_path)
    assert (refused.value.code, "stop_gradient" in str(refused.value)) == ("E_LOSS", True)


def test_averages_of_flax_are_not_trained(tmp_path: Path) -> None:
    bundle = opened_here("own_jax_nets:with_averages", "cross_entropy", tmp_path).bundle
    fixed = {each.name for each in bundle.spec.weights if not each.trained}
    assert fixed == {"batch_stats.normalised.mean", "batch_stats.normalised.var"}
    assert "batch_stats" in bundle.no_training


def test_gradients_of_a_loss_of_one_s_own_are_those_of_jax(nets: Any, tmp_path: Path) -> None:
    labels = np.arange(4)
    np.save(tmp_path / "labels.npy", labels)
    found = opened_here("own_jax_nets:convolutional", "own_jax_nets:smoothed", tmp_path, f"{tmp_path}/labels.npy")
    assert found.bundle.routes["jax"].why_not_in("fp32", "grad") == ""
    assert found.bundle.routes["tensorflow"].why_not_in("fp32", "grad") == ""
    function, params, _ = nets.convolutional()
    batch = found.batch()
    inputs = Batch(dict(InFloat64(batch.inputs)), batch.labels)
    got = found.slopes.slopes(dict(InFloat64(found.weights)), inputs, training=True)
    with jax.enable_x64(True):
        wide = jax.tree.map(lambda each: jax.numpy.asarray(each, np.float64), params)
        image = jax.numpy.asarray(inputs.inputs["image"])
        loss, expected = jax.value_and_grad(lambda held: nets.smoothed(function(held, image), labels))(wide)
        named = dict(zip(Params(params).weights(), jax.tree.leaves(expected), strict=True))
    assert got.loss == pytest.approx(float(loss), rel=1e-12)
    for name, array in named.items():
        np.testing.assert_allclose(got.gradients[name], array, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "loss", "code"),
    [
        ("casting", "cross_entropy", "E_NO_GRADIENTS"),
        ("convolutional", "own_jax_nets:per_item", "E_LOSS"),
        ("convolutional", "own_jax_nets:counted", "E_SOURCE_RANDOM"),
    ],
)
def test_what_cannot_be_differentiated_is_refused(name: str, loss: str, code: str, tmp_path: Path) -> None:
    with pytest.raises(FairlapError) as refused:
        opened_here(f"own_jax_nets:{name}", loss, tmp_path)
    assert refused.value.code == code
