"""What a request may ask of the gradients and the training of a user's own model, before it is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fairlap.errors import InvalidRequest
from fairlap.models.sources.registry import kinds
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("m.onnx", "m.tflite", "m.pt2", "m.pt"):
        (tmp_path / name).touch()


def code_of(models: str, mode: Any = "infer", **asked: Any) -> str:
    with pytest.raises(InvalidRequest) as refused:
        plan_of(RaceRequest(models=(models,), contestants=Contestants("torch"), mode=mode, blocks=1, **asked))
    return refused.value.code


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        ("m.onnx", {"mode": "grad"}),  # without a loss
        ("m.onnx", {"mode": "grad", "loss": "hinge"}),
        ("m.onnx", {"loss": "mse"}),  # in inference
        ("mlp", {"mode": "train", "loss": "mse"}),
    ],
)
def test_a_loss_is_needed_where_a_model_of_one_s_own_is_differentiated(model: str, asked: dict[str, Any]) -> None:
    assert code_of(model, **asked) == "E_LOSS"


@pytest.mark.parametrize("model", ["m.tflite", "m.pt2", "m.pt"])
def test_a_source_without_gradients_says_so(model: str) -> None:
    assert code_of(model, "train", loss="cross_entropy") == "E_NO_GRADIENTS"


def test_a_folder_of_a_saved_model_has_no_gradients_either(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").touch()
    assert code_of(str(tmp_path), "grad", loss="mse") == "E_NO_GRADIENTS"


def test_a_metric_is_of_inference() -> None:
    asked = {"loss": "mse", "metric": ("mse",), "labels": "y.npy", "inputs": "x.npy"}
    assert code_of("m.onnx", "train", **asked) == "E_METRIC"


def test_every_kind_of_source_has_gradients_or_a_reason() -> None:
    with_gradients = {kind.title for kind in kinds() if not kind.no_gradients}
    assert {"ONNX", "a Python function"} <= with_gradients
    assert all(not kind.no_gradients.endswith(".") for kind in kinds())
