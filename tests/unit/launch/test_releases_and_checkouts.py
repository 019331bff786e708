"""Contestants with a release in their environment, or from a checkout: what is installed, searched and refused."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from fairlap.errors import InvalidRequest
from fairlap.frameworks.registry import framework_named
from fairlap.launch.runners import require_known, requirements_of, runners_for, runs_here
from fairlap.machine.software import package_of
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.kinds.python_function import returned_by
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.planning.plan_reach import reach_of
from fairlap.race.planning.sources_from_request import sources_named
from fairlap.request.fields.source import CHECKOUT_VARIABLE, Source
from fairlap.request.names import ContestantName, Contestants, contestant_named
from fairlap.request.race_request import RaceRequest

DIGEST = "0" * 64


def requirements(text: str, device: str = "cpu") -> tuple[str, ...]:
    name = contestant_named(text)
    return requirements_of(name, framework_named(name.framework), device)


def test_a_release_takes_the_place_of_its_package_or_is_added() -> None:
    pinned = framework_named("onnxruntime").packages
    assert requirements("onnxruntime:with=onnxruntime==1.30.0") == ("onnxruntime==1.30.0", pinned[1])
    assert requirements("onnxruntime:with=ONNX==1.20.0") == ("ONNX==1.20.0", pinned[0])
    assert requirements("onnxruntime:with=numpy==2.1.0") == ("numpy==2.1.0", *pinned)
    assert requirements("python:call=a.b:with=hot.pkg==1.0") == ("hot.pkg==1.0",)
    assert requirements("jax:with=jax==0.9.0", "cuda")[0] == "jax[cuda13]==0.9.0"
    wheel = f"torch @ file:///nightlies/torch-2.14-cp311.whl#sha256={DIGEST}"
    name = ContestantName("base", "torch", options=(("with", wheel),))
    assert requirements_of(name, framework_named("torch")) == (wheel,)
    assert not runs_here(name, framework_named("torch"))
    assert package_of("Nvidia.ML_py==1") == "nvidia-ml-py"


@pytest.mark.parametrize(
    "release",
    ["numpy", "numpy>=2", "-r evil", "--index-url=x", "numpy==1 --pre", "evil @ https://x/e.whl", "e @ file:///e.whl"],
)
def test_what_is_not_one_release_is_refused(release: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        ContestantName("torch", "torch", options=(("with", release),))
    assert caught.value.code == "E_CONTESTANT"


@pytest.mark.parametrize("text", ["http://127.0.0.1:8000/v2/models/x:with=numpy==2.1.0", "./worker:with=numpy==2.1.0"])
def test_a_release_for_what_does_not_run_in_an_environment_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        require_known(Contestants(text))
    assert caught.value.code == "E_CONTESTANT"


def test_a_plan_lists_the_releases_and_checkouts_that_it_reaches(tmp_path: Path) -> None:
    def reached(name: str) -> set[str]:
        return set(reach_of(plan_of(RaceRequest(models=("mlp",), contestants=Contestants(name), blocks=1))))

    assert reached("torch:with=evil==1.0") == {"package evil==1.0"}
    assert len(reached(f"torch:checkout={tmp_path}")) == 1


def test_a_checkout_is_searched_first_in_its_process_and_its_options_are_not_the_framework_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "before")
    (tmp_path / "src").mkdir()
    with ExitStack() as stack:
        names = Contestants(f"torch:checkout={tmp_path}")
        [runner] = runners_for(names, 1, "cpu", tmp_path, stack, lambda _: None)
    assert runner.missing is None
    searched = runner.environment["PYTHONPATH"].split(os.pathsep)
    assert searched == [str(tmp_path), str(tmp_path / "src"), "before"]
    assert runner.environment[CHECKOUT_VARIABLE] == str(tmp_path)
    with pytest.raises(InvalidRequest):
        require_known(Contestants(f"torch:checkout={tmp_path}/nothing"))


def test_a_model_is_opened_from_the_checkout_of_the_first_contestant(tmp_path: Path) -> None:
    names = Contestants(f"torch:checkout={tmp_path}/a,torch:checkout={tmp_path}/b")
    request = RaceRequest(models=("mypkg.net:build",), contestants=names)
    [source] = sources_named(request, "mypkg.net:build")
    assert source.checkout == f"{tmp_path}/a"
    assert source.identity == msgspec.structs.replace(source, checkout=f"{tmp_path}/b").identity


def test_a_function_comes_from_the_checkout_of_its_process_or_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, value in (("here", 1), ("there", 2)):
        (tmp_path / place).mkdir()
        (tmp_path / place / "found_in_checkout.py").write_text(f"def build():\n    return {value}\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    source = Source("found_in_checkout:build", "found_in_checkout:build", str(tmp_path / "here"))
    monkeypatch.setenv(CHECKOUT_VARIABLE, str(tmp_path / "there"))
    assert returned_by(source) == 2
    monkeypatch.setenv(CHECKOUT_VARIABLE, str(tmp_path / "here"))
    with pytest.raises(SourceError):  # it was imported already, from elsewhere
        returned_by(source)
    monkeypatch.delitem(sys.modules, "found_in_checkout")
