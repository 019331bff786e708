"""What is missing is named with the extra of fairlap that has it."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest
from fairlap.machine.software import how_to_install
from fairlap.models.sources.python_models.torch_exports import converted_route

LISTED = ["numpy>=1", 'onnxscript>=0.5; extra == "onnx"', "soundfile; python_version < '3.99' and extra == 'speech'"]


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("onnxscript", "pip install 'fairlap[onnx]'"),
        ("onnxscript.optimizer", "pip install 'fairlap[onnx]'"),
        ("soundfile", "pip install 'fairlap[speech]'"),
        ("numpy", "install it"),
        ("PIL", "install it"),
    ],
)
def test_a_module_of_an_extra_is_installed_by_it(module: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: LISTED)
    assert how_to_install(module) == line


def test_a_conversion_that_lacks_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: LISTED)

    def write() -> int:
        raise ModuleNotFoundError("No module named 'onnxscript'", name="onnxscript")

    assert "fairlap[onnx]" in converted_route(write, 0.0).why_not


def test_the_extra_is_one_of_the_project() -> None:
    project = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    assert 'onnx = ["onnx>=1.18", "onnxscript' in project
