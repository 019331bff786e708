"""A model of keras.applications with drawn weights, as people try it first, races wherever it has a route."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import SHORT
from command_line import fairlap as run

ON = {
    "torch": "torch",
    "jax": "jax",
    "tensorflow": "tensorflow:graph",
    "onnxruntime": "onnxruntime",
    "openvino": "openvino",
    "litert": "litert",
}
SMALLEST = {  # the smallest side of an image that each takes
    "MobileNetV2": 32,
    "MobileNetV3Small": 32,
    "EfficientNetB0": 32,
    "EfficientNetV2B0": 32,
    "ResNet50": 32,
    "DenseNet121": 32,
    "NASNetMobile": 32,
    "InceptionV3": 75,
    "Xception": 71,
    "ConvNeXtTiny": 32,
}
QUICKEST = "MobileNetV3Small"
pytestmark = [pytest.mark.slow, pytest.mark.sanitized, pytest.mark.timeout(1800)]

CODE = """
import keras

def build():
    keras.utils.set_random_seed(0)
    return keras.applications.{name}(weights=None, input_shape=({side}, {side}, 3), classes=10)
"""


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each == QUICKEST else pytest.mark.thorough) for each in SMALLEST]
)
def test_it_races_in_every_framework_that_has_a_route(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for module in ("tensorflow", "keras", "torch", "onnxscript", "jax", "openvino", "onnxruntime", "ai_edge_litert"):
        pytest.importorskip(module, reason="`make test` installs it and runs this")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    (tmp_path / "own_application.py").write_text(CODE.format(name=name, side=SMALLEST[name]))
    model = ("own_application:build", "--batch", "1")
    listed = run("list", "routes", *model, "--json", cwd=tmp_path, timeout_s=900)
    assert listed.returncode == 0, listed.stderr
    routes = {each["framework"]: each for each in json.loads(listed.stdout)["routes"]}
    assert {name: routes[name]["why_not"] for name in ON} == dict.fromkeys(ON, "")
    on = ",".join(ON.values())
    done = run("compare", *model, "--on", on, *SHORT, "-o", tmp_path / "rows.jsonl", cwd=tmp_path, timeout_s=900)
    assert done.returncode == 0, done.stderr
    rows = {row["contestant"]: row for row in map(json.loads, (tmp_path / "rows.jsonl").read_text().splitlines())}
    assert set(rows) == set(ON.values())
    for contestant, row in rows.items():
        assert row["outcome"] == "finished", (contestant, row["message"])
        assert 0 < row["error_relative"] < 1e-4, contestant
        assert "W_WEAK_PROOF" not in [warning["code"] for warning in row["warnings"]]
