"""Our models are found by their folders, those of others by their entry points."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import ModuleType

import fairlap
import fairlap.bench_models
import pytest
from fairlap.errors import InvalidRequest
from fairlap.models.registry import GROUP, find, workload_names
from fairlap.models.spec import Spec


def test_our_models_are_found_by_name() -> None:
    assert {"attention", "conv2d", "gemm", "layernorm", "mlp", "softmax"} <= set(workload_names())
    found = find("mlp")
    assert (found.package, found.spec.name) == ("fairlap.bench_models.mlp", "mlp")


def test_listing_imports_no_model_and_finding_one_imports_no_other_and_no_framework() -> None:
    program = (
        "import sys\n"
        "from fairlap.models.registry import find, workload_names\n"
        "def seen(): return {m for m in sys.modules if m.startswith('fairlap.bench_models.')}\n"
        "workload_names(); assert not seen(), seen()\n"
        "find('gemm'); assert seen() == {'fairlap.bench_models.gemm', 'fairlap.bench_models.gemm.spec'}, seen()\n"
        "assert not {'torch', 'jax', 'tensorflow', 'onnx'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, env=_environment())


def test_an_unknown_model_is_refused_with_the_names_near_it() -> None:
    with pytest.raises(InvalidRequest, match="gemm"):
        find("gem")
    with pytest.raises(InvalidRequest, match="☂"):
        find("☂")


def test_a_model_of_another_package_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    _plug_in(monkeypatch, SPEC=find("gemm").spec)
    assert "theirs" in workload_names()
    assert find("theirs").package == "their_package"


def test_another_package_cannot_take_the_name_of_a_model_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    _plug_in(monkeypatch, name="mlp", SPEC=find("gemm").spec)
    assert find("mlp").package == "fairlap.bench_models.mlp"


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        ({}, "the model theirs from their_package cannot be loaded: AttributeError"),
        ({"SPEC": "none"}, "their_package.spec.SPEC is a str, not a Spec"),
        (None, "the model theirs from their_package cannot be loaded: ModuleNotFoundError"),
    ],
)
def test_a_broken_model_of_another_package_is_refused_with_the_reason(
    contents: dict[str, str] | None, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _plug_in(monkeypatch, importable=contents is not None, **(contents or {}))
    assert "theirs" in workload_names()
    with pytest.raises(InvalidRequest, match=reason):
        find("theirs")


def _plug_in(
    monkeypatch: pytest.MonkeyPatch, name: str = "theirs", importable: bool = True, **contents: Spec | str
) -> None:
    entry = metadata.EntryPoint(name, "their_package", GROUP)
    monkeypatch.setattr(metadata, "entry_points", lambda group: [entry] if group == GROUP else [])
    if importable:
        module = ModuleType("their_package.spec")
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, "their_package", ModuleType("their_package"))
        monkeypatch.setitem(sys.modules, "their_package.spec", module)


def _environment() -> dict[str, str]:
    homes = [str(Path(str(module.__file__)).parents[1]) for module in (fairlap,)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*homes, os.environ.get("PYTHONPATH", "")])}
