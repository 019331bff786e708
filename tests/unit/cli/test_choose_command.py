"""What ``fairlap choose`` refuses, in one line with a code and before anything is raced."""

from __future__ import annotations

from pathlib import Path

import fairlap
import numpy as np
import pytest
from command_line import refusal
from fairlap.errors import FairlapError

DATA = ("--inputs", "x.npy", "--labels", "y.npy")
TWO = ("choose", "a.onnx", "b.onnx", "--on", "onnxruntime")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([*TWO, "--metric", "top1", "--inputs", "x.npy"], "E_METRIC"),  # no labels
        ([*TWO, *DATA], "E_METRIC"),  # no metric
        ([*TWO, *DATA, "--metric", "top1,top5"], "E_METRIC"),
        ([*TWO, *DATA, "--metric", "top1", "--minimise", "cost"], "E_CHOOSE"),  # no price
        ([*TWO, *DATA, "--metric", "top1", "--require", "top1>=90GB"], "E_REQUIRE"),
        (["choose", "mlp", "convnet", "--on", "torch", *DATA, "--metric", "top1"], "E_METRIC"),  # not the user's own
    ],
)
def test_a_choice_that_cannot_be_made_is_refused(arguments: list[str], code: str) -> None:
    assert refusal(*arguments).code == code


@pytest.mark.parametrize(
    ("options", "code"),
    [({"minimise": "size"}, "E_CHOOSE"), ({"use": "edge"}, "E_CHOOSE"), ({"metric": ("top1", "f1")}, "E_METRIC")],
)
def test_python_refuses_what_a_choice_does_not_answer(options: dict[str, object], code: str) -> None:
    given = {"inputs": "x.npy", "labels": "y.npy", "metric": "top1", **options}
    with pytest.raises(FairlapError) as error:
        fairlap.choose(["a.onnx", "b.onnx"], on="onnxruntime", **given)  # type: ignore[arg-type]
    assert error.value.code == code


@pytest.mark.slow
def test_a_model_whose_outputs_have_another_form_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnx", reason="`make test` installs it and runs this")
    from dense_network import save_network

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    drawn = np.random.default_rng(0)
    for name, classes in (("four", 4), ("two", 2)):
        hidden, output = drawn.normal(size=(64, 8)), drawn.normal(size=(8, classes))
        save_network(tmp_path / f"{name}.onnx", (hidden, np.zeros(8), output, np.zeros(classes)))
    np.save(tmp_path / "x.npy", drawn.normal(size=(8, 64)).astype(np.float32))
    np.save(tmp_path / "y.npy", np.full(8, 3))
    options = (*DATA, "--metric", "top1", "--on", "onnxruntime", "--batch", 4)
    found = refusal("choose", "four.onnx", "two.onnx", *options)
    assert found.code == "E_METRIC"
    assert str(found).startswith("two.onnx: ")
    assert refusal("choose", "four.onnx", *options).code == "E_CHOOSE"
