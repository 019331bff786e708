"""Adapters are found by name, and naming one imports no framework."""

from __future__ import annotations

import subprocess
import sys

import pytest
from fairlap.errors import WrongRequest
from fairlap.frameworks.contract import Settings
from fairlap.frameworks.registry import framework_at, framework_named, framework_names, is_importable

HEAVY = ("torch", "jax", "tensorflow", "onnxruntime", "onnx", "openvino", "ai_edge_litert")


@pytest.mark.parametrize("name", framework_names())
def test_every_adapter_can_be_named_without_its_framework(name: str) -> None:
    code = (
        f"import sys; from fairlap.frameworks.registry import framework_named, is_importable;"
        f"found = framework_named({name!r}); is_importable(found);"
        f"print(found.name, [each for each in {HEAVY!r} if each in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.stdout.strip() == f"{name} []", told.stderr


@pytest.mark.parametrize("name", framework_names())
def test_every_adapter_pins_what_pip_installs_and_starts_with_its_plain_variant(name: str) -> None:
    framework = framework_named(name)
    assert all("==" in package for package in framework.packages)
    assert framework.variants[0] == ""
    variables = framework.environment_for(Settings(threads=3))
    assert all(isinstance(value, str) for value in variables.values())


def test_an_unknown_framework_is_refused_with_near_ones() -> None:
    with pytest.raises(WrongRequest, match="there is no framework 'pytorch'; did you mean torch"):
        framework_named("pytorch")


@pytest.mark.parametrize("place", ["no_such_module:X", "math:nothing", "math:pi", "builtins:int"])
def test_a_place_without_an_adapter_is_refused_by_the_place(place: str) -> None:
    with pytest.raises(WrongRequest, match=place):
        framework_at(place)


def test_a_framework_that_is_not_installed_is_not_importable() -> None:
    class Missing(framework_named("torch")):  # type: ignore[misc]
        module = "no_such_framework.part"

    assert not is_importable(Missing)
