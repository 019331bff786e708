"""An embedding's row of padding gets no gradient by being looked up, in any framework, as in PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machine_marks import needs

torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
needs("onnxscript")

from fairlap.models.onnx_import.files.load import load_graph  # noqa: E402
from fairlap.models.sources.imported import Imported  # noqa: E402
from fairlap.models.sources.proof import InFloat64  # noqa: E402
from fairlap.models.sources.python_models.torch_exports import ONNX_FILE, weight_names_in  # noqa: E402
from fairlap.models.training.reference import Batch, Slopes  # noqa: E402
from learning_sources import SUPPORT, OpenedHere, opened_here  # noqa: E402

pytestmark = pytest.mark.slow

FIRST, LAST = 0, 19  # the rows of padding of ``words`` and ``kinds``


@pytest.fixture(autouse=True)
def _networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SUPPORT))


def by_hand(found: OpenedHere, batch: Batch) -> dict[str, np.ndarray]:
    """Differentiate with the lookups written out: the row of padding is a constant there, and none in the head."""
    held = {name: torch.tensor(np.array(each), dtype=torch.float64) for name, each in found.weights.items()}
    for each in held.values():
        each.requires_grad_(True)
    ids = torch.tensor(np.array(batch.inputs["ids"]))
    assert (ids == FIRST).any()
    assert (ids == LAST).any()

    def looked_up(table: Any, padding: int) -> Any:
        rows = torch.nn.functional.one_hot(ids, len(table)).double() @ table
        return torch.where((ids == padding)[..., None], rows.detach(), rows)

    inside = torch.tanh(looked_up(held["words.weight"], FIRST) + looked_up(held["kinds.weight"], LAST)).mean(1)
    scores = inside @ held["words.weight"].T + held["head.bias"]
    torch.nn.functional.cross_entropy(scores, torch.tensor(np.array(batch.labels)).long()).backward()
    return {name: each.grad.numpy() for name, each in held.items()}


def test_the_reference_takes_the_gradients_of_lookups_written_out(tmp_path: Path) -> None:
    found = opened_here("own_nets:padded", "cross_entropy", tmp_path)  # whose proof compares them with slopes
    batch = found.batch()
    got = reference(found, batch).gradients
    expected = by_hand(found, batch)
    assert got.keys() == expected.keys() == {"words.weight", "kinds.weight", "head.bias"}
    for name, each in expected.items():
        np.testing.assert_allclose(got[name], each, rtol=1e-9, atol=1e-12)
    assert not got["kinds.weight"][LAST].any()
    assert got["kinds.weight"][FIRST].any()
    assert got["words.weight"][FIRST].any()  # from the head


def reference(found: OpenedHere, batch: Batch) -> Slopes:
    return found.slopes.slopes(dict(InFloat64(found.weights)), Batch(batch.inputs, batch.labels), training=False)


@pytest.mark.parametrize("framework", ["jax", "tensorflow", "torch"])
def test_a_conversion_takes_the_same(framework: str, tmp_path: Path) -> None:
    pytest.importorskip(framework, reason="`make test` installs it and runs this")
    found = opened_here("own_nets:padded", "cross_entropy", tmp_path)
    names, batch = weight_names_in(found.folder), found.batch()
    model = Imported.from_file(found.folder / ONNX_FILE, framework, weight_names=names)
    got = GRADIENTS[framework](model, found.weights, batch.inputs["ids"], np.asarray(batch.labels))
    for name, each in by_hand(found, batch).items():
        np.testing.assert_allclose(got[name], each, rtol=1e-4, atol=1e-6, err_msg=name)


def in_jax(model: Imported, weights: Any, ids: Any, labels: Any) -> dict[str, Any]:
    import jax

    def loss(params: Any) -> Any:
        shares = jax.nn.log_softmax(model.forward(params, {"ids": jax.numpy.asarray(ids)})[0])
        return -shares[np.arange(len(labels)), labels].mean()

    return {name: np.asarray(each) for name, each in jax.jit(jax.grad(loss))(model.params(weights)).items()}


def in_tensorflow(model: Imported, weights: Any, ids: Any, labels: Any) -> dict[str, Any]:
    import tensorflow as tf

    module = model.build(weights)
    with tf.GradientTape() as tape:
        of_rows = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, module({"ids": tf.constant(ids)})[0])
        value = tf.reduce_mean(of_rows)
    held = {name: module.variables_by_name[name] for name in weights}
    found = tape.gradient(value, list(held.values()))
    return {name: tf.convert_to_tensor(each).numpy() for name, each in zip(held, found, strict=True)}


def in_torch(model: Imported, weights: Any, ids: Any, labels: Any) -> dict[str, Any]:
    module = model.build(weights)
    held = {name: each.requires_grad_(True) for name, each in module.named_parameters()}
    scores = module(torch.tensor(np.array(ids)))[0]
    torch.nn.functional.cross_entropy(scores, torch.tensor(np.array(labels)).long()).backward()
    return {name: each.grad.numpy() for name, each in held.items()}


GRADIENTS: dict[str, Any] = {"jax": in_jax, "tensorflow": in_tensorflow, "torch": in_torch}


def test_the_export_is_differentiated_as_the_module(tmp_path: Path) -> None:
    """Its file opens as an ONNX source too, which is differentiated by the importer in PyTorch."""
    found = opened_here("own_nets:padded", "cross_entropy", tmp_path)
    file = found.folder / ONNX_FILE
    assert {node.attributes.get("padding") for node in load_graph(file).nodes if node.operator == "Gather"} == {
        FIRST,
        LAST,
    }
    again = opened_here(str(file), "cross_entropy", tmp_path)
    names = weight_names_in(found.folder)
    batch = again.batch()
    batch = Batch({"ids": found.batch().inputs["ids"]}, batch.labels)
    got = {names[name]: each for name, each in reference(again, batch).gradients.items()}
    for name, each in by_hand(found, batch).items():
        np.testing.assert_allclose(got[name], each, rtol=1e-6, atol=1e-9, err_msg=name)
