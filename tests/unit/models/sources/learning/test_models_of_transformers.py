"""Gradients of a folder of transformers are those of its own model, and what trains of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machine_marks import needs

torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
transformers = pytest.importorskip("transformers", reason="`make test` installs it and runs this")
needs("onnxscript")

from fairlap.models.sources.contract import SourceError  # noqa: E402
from fairlap.models.sources.proof import InFloat64  # noqa: E402
from fairlap.models.training.reference import Batch  # noqa: E402
from fairlap.request.fields.source import Source  # noqa: E402
from learning_sources import SUPPORT, OpenedHere, opened_source  # noqa: E402
from transformers_folders import folder_of  # noqa: E402

pytestmark = pytest.mark.slow


def opened(folder: Path, loss: str = "cross_entropy", *, trust: bool = False, **sizes: int) -> OpenedHere:
    dims = tuple({"batch": 2, **sizes}.items())
    source = Source(folder.name, f"hf:{folder}", str(SUPPORT), dims=dims, loss=loss, trust=trust)
    return opened_source(source, folder.parent)


def own_model(folder: Path, weights: Any) -> Any:
    config = transformers.AutoConfig.from_pretrained(folder)
    model = getattr(transformers, config.architectures[0])(config)
    held = {name: torch.tensor(np.array(array)) for name, array in weights.items()}
    assert not set(held) - set(model.state_dict())
    model.load_state_dict(held, strict=False)
    return model.eval().double()


@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_gradients_are_those_of_autograd(name: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / name, name)
    found = opened(folder, sequence=6)
    batch = found.batch()
    assert batch.labels is not None
    model = own_model(folder, found.weights)
    logits = model(torch.tensor(np.array(batch.inputs["input_ids"]))).logits
    labels = torch.tensor(np.array(batch.labels)).long()
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, -2), labels.flatten())
    loss.backward()
    wide = Batch(dict(InFloat64(batch.inputs)), batch.labels)
    got = found.slopes.slopes(dict(InFloat64(found.weights)), wide, training=False)
    assert got.loss == pytest.approx(loss.item(), rel=1e-9)
    expected = {name: each.grad for name, each in model.named_parameters() if each.grad is not None and each.grad.any()}
    assert got.gradients.keys() == expected.keys()
    largest = max(float(each.abs().max()) for each in expected.values())
    for weight, each in expected.items():
        np.testing.assert_allclose(got.gradients[weight], each.numpy(), rtol=1e-7, atol=1e-9 * largest)


def test_dropout_of_its_configuration_is_not_trained(tmp_path: Path) -> None:
    assert "dropout" in opened(folder_of(tmp_path / "gpt2", "gpt2"), sequence=6).bundle.no_training
    without = folder_of(tmp_path / "other", "gpt2", embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0)
    bundle = opened(without, sequence=6).bundle
    assert bundle.no_training == ""
    assert [bundle.routes[name].why_not_in("fp32", "train") for name in ("torch", "jax", "tensorflow")] == [""] * 3


def test_a_model_with_buffers_that_it_does_not_save_trains_everywhere(tmp_path: Path) -> None:
    """As the rotary frequencies of a Llama are."""
    bundle = opened(folder_of(tmp_path / "llama", "llama"), sequence=6).bundle
    assert [bundle.routes[name].why_not_in("fp32", "train") for name in ("torch", "jax", "tensorflow")] == [""] * 3


def test_a_loss_of_one_s_own_is_code_that_needs_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SUPPORT))
    folder = folder_of(tmp_path / "gpt2", "gpt2")
    with pytest.raises(SourceError) as refused:
        opened(folder, "own_nets:of_logits", sequence=6)
    assert refused.value.code == "E_SOURCE_TRUST"
    bundle = opened(folder, "own_nets:of_logits", sequence=6, trust=True).bundle
    assert [bundle.routes[name].why_not_in("fp32", "grad") for name in ("torch", "jax", "tensorflow")] == [""] * 3
