"""What is wrong with a loss, its labels or the gradients of a model is named, and before anything is exported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")

from fairlap.models.sources.contract import SourceError  # noqa: E402
from fairlap.models.sources.opening import Order, opened_folder  # noqa: E402
from fairlap.request.fields.source import Source  # noqa: E402
from learning_sources import SETS  # noqa: E402

MODEL = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x):
        x = torch.tanh(self.first(x)){after_first}
        return self.head(torch.tanh(self.second(x))){after_head}


def build():
    torch.manual_seed(3)
    return Net().eval(), (torch.randn(5, 6),)


def loss(scores, labels):
    {loss}
"""


def refusal(
    folder: Path,
    loss: str = "cross_entropy",
    labels: str = "",
    after_first: str = "",
    after_head: str = "",
    own: str = "",
) -> SourceError:
    module = f"mistaken_{abs(hash((str(folder), after_first, after_head, own)))}"
    code = MODEL.format(after_first=after_first, after_head=after_head, loss=own or "return scores.mean()")
    (folder / f"{module}.py").write_text(code)
    loss = f"{module}:loss" if own else loss
    source = Source(f"{module}:build", f"{module}:build", str(folder), loss=loss, labels=labels)
    with pytest.raises(SourceError) as refused:
        opened_folder(Order(source, SETS, str(folder)))
    return refused.value


@pytest.fixture
def no_export(monkeypatch: pytest.MonkeyPatch) -> None:
    def exports(*_: object, **__: object) -> None:
        pytest.fail("it was exported before the loss was checked")

    monkeypatch.setattr(torch.export, "export", exports)


def test_a_detached_part_names_its_first_weights(tmp_path: Path) -> None:
    found = refusal(tmp_path, after_first=".detach()")
    assert found.code == "E_LOSS"
    assert "first.weight, first.bias" in str(found)
    assert "detach()" in str(found)
    assert "head" not in str(found)


@pytest.mark.slow
def test_of_a_loss_of_one_s_own_it_does_too(tmp_path: Path) -> None:
    found = refusal(tmp_path, after_first=".detach()", own="return scores.square().mean()")
    assert found.code == "E_LOSS"
    assert "first.weight, first.bias" in str(found)


@pytest.mark.usefixtures("no_export")
@pytest.mark.parametrize("own", ["", "return scores.square().mean()"])
def test_a_model_that_detaches_its_answer_has_no_gradient(tmp_path: Path, own: str) -> None:
    found = refusal(tmp_path, after_head=".detach()", own=own)
    assert found.code == "E_LOSS"
    assert "detach()" in str(found)
    assert "grad_fn" not in str(found)


@pytest.mark.usefixtures("no_export")
@pytest.mark.parametrize(
    ("own", "named"),
    [
        ("return scores.mean().item()", "float"),
        ("scores.mean()", "nothing"),
        ("return scores.mean(1)", "[5]"),
        ("return scores.argmax()", "int64"),
        ("return scores.mean().detach()", "detach()"),
        ("return nn.functional.cross_entropy(scores, labels[:3])", "raised"),
        ("return undefined_name", "undefined_name"),
    ],
)
def test_what_is_no_loss_is_refused_in_words_of_its_own(tmp_path: Path, own: str, named: str) -> None:
    found = refusal(tmp_path, own=own)
    assert found.code == "E_LOSS"
    assert named in str(found)
    assert not any(words in str(found) for words in ("grad_fn", "implicitly created", "has no attribute"))


@pytest.mark.usefixtures("no_export")
@pytest.mark.parametrize(
    "labels", [np.zeros(3, np.int64), np.zeros(5, np.float32), np.full(5, 4), np.array(["a"]), None]
)
def test_labels_that_do_not_fit_are_refused_before_the_export(tmp_path: Path, labels: np.ndarray | None) -> None:
    if labels is not None:
        np.save(tmp_path / "labels.npy", labels)
    assert refusal(tmp_path, labels=str(tmp_path / "labels.npy")).code == "E_LOSS"


@pytest.mark.usefixtures("no_export")
@pytest.mark.parametrize("loss", ["no_such_module:loss", "math:pi"])
def test_a_loss_that_cannot_be_imported_is_refused_before_the_export(tmp_path: Path, loss: str) -> None:
    assert refusal(tmp_path, loss).code == "E_LOSS"
