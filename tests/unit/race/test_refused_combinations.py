"""Options that cannot be honoured together are refused before anything is opened or started."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from command_line import invoke
from fairlap.errors import InvalidRequest
from fairlap.launch import opened_source
from fairlap.race.planning.plan_from_request import LEAST_OF_A_WORKER_BYTES, plan_of
from fairlap.race.planning.shared_processes import require_shared
from fairlap.request.names import NO_CONTESTANTS, Contestants, Device
from fairlap.request.race_request import RaceRequest
from fairlap.request.units import Seconds, Share

CORES = tuple(sorted(os.sched_getaffinity(0)))
ITEMS: dict[str, Any] = {"items": "photos", "before": "decoding:decode"}


@pytest.fixture
def _opens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: Any) -> Any:
        raise AssertionError("a process was started to open the model")

    monkeypatch.setattr(opened_source, "_open", opened)


@pytest.mark.usefixtures("_opens_nothing")
@pytest.mark.parametrize(("models", "code"), [(("data:photos",), "E_DATA"), (("characters_generate",), "E_ITEMS")])
def test_files_are_answered_by_models_that_give_outputs_of_inputs(models: tuple[str, ...], code: str) -> None:
    request = RaceRequest(models=models, contestants=Contestants("loop,dataloader"), **ITEMS)
    with pytest.raises(InvalidRequest) as refused:
        plan_of(request, available_cores=CORES)
    assert refused.value.code == code


@pytest.mark.parametrize("options", [{}, {"mode": "train", "batch": (1, 2)}], ids=["one work", "training"])
def test_a_race_that_shares_no_process_does_not_take_never(options: dict[str, Any]) -> None:
    request = RaceRequest(models=("mlp",), contestants=Contestants("torch,onnxruntime"), fresh="never", **options)
    with pytest.raises(InvalidRequest, match="--fresh never"):
        require_shared(plan_of(request, available_cores=CORES))


def test_a_race_that_shares_processes_takes_never() -> None:
    request = RaceRequest(models=("mlp",), contestants=Contestants("torch,onnxruntime"), fresh="never", batch=(1, 2))
    require_shared(plan_of(request, available_cores=CORES))


def test_the_command_refuses_it_too() -> None:
    done = invoke("compare", "mlp", "--on", "torch,onnxruntime", "--fresh", "never", "--dry-run")
    assert isinstance(done.exception, InvalidRequest)
    assert "--fresh never" in str(done.exception)


@pytest.mark.usefixtures("_opens_nothing")
@pytest.mark.parametrize(
    "more",
    [
        {"device": Device("cpu")},
        {"data": "synthetic"},
        {"mode": "train", "to_score": Share("90%")},
        {"contestants": Contestants("torch:over=http")},
        {"models": (), "contestants": NO_CONTESTANTS, "commands": {"old": "true"}},
        {"mode": "jvp", "models": ("rosenbrock",)},
    ],
    ids=["no GPU", "fed", "to a score", "behind HTTP", "commands", "derivatives"],
)
@pytest.mark.parametrize("asked", [{"cache": "cold"}, {"regime": "burst"}], ids=["cold", "burst"])
def test_conditions_of_a_gpu_are_for_calls_of_a_model_on_one(asked: dict[str, Any], more: dict[str, Any]) -> None:
    usual: dict[str, Any] = {"models": ("mlp",), "contestants": Contestants("torch"), "device": Device("cuda:0")}
    with pytest.raises(InvalidRequest) as refused:
        plan_of(RaceRequest(**{**usual, **asked, **more}), available_cores=CORES)
    assert (refused.value.code, len(str(refused.value).splitlines())) == ("E_DEVICE_CONDITIONS", 1)


@pytest.mark.parametrize("asked", [{"cache": "cold"}, {"regime": "burst"}], ids=["cold", "burst"])
def test_ranks_are_timed_without_conditions_of_a_gpu(asked: dict[str, Any]) -> None:
    request = RaceRequest(
        models=("mlp",), contestants=Contestants("torch"), device=Device("cuda:0"), hosts=("a", "b"), **asked
    )
    with pytest.raises(InvalidRequest) as refused:
        plan_of(request, available_cores=CORES)
    assert refused.value.code == "E_SCALE"


@pytest.mark.usefixtures("_opens_nothing")
@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"fresh": "never", "contestants": Contestants("torch,openvino")}, "E_REQUEST"),
        ({"fresh": "first", "sandbox": True}, "E_REQUEST"),
        ({"fresh": "first", "memory_limit_bytes": 1 << 40}, "E_REQUEST"),
        ({"fresh": "first", "conditions": "as-found"}, "E_REQUEST"),
        ({"memory_limit_bytes": 5}, "E_REQUEST"),
        ({"memory_limit_bytes": LEAST_OF_A_WORKER_BYTES - 1}, "E_REQUEST"),
        ({"contestants": Contestants("torch,torch:compile:mode=max")}, "E_REQUEST"),
        ({"baseline": "trch"}, "E_REQUEST"),
        ({"max_slowdown": Share("2%")}, "E_REQUEST"),
        ({"max_batch_budget": Seconds(1.0)}, "E_REQUEST"),
        ({"models": ("m.onnx", "mlpp")}, "E_REQUEST"),
        ({"models": ("m.onnx", "jax")}, "E_REQUEST"),
        ({"models": ("m.onnx", "n.onnx")}, "E_MODEL_FILE"),
        ({"data": "nowhere.npy"}, "E_DATA"),
        ({"optimizer": "sgd:lr=0.1"}, "E_REQUEST"),
        ({"start_from": "w.npz"}, "E_START_FROM"),
        ({"reference": "math:sin"}, "E_REFERENCE"),
    ],
)
def test_what_needs_no_model_is_refused_before_one_is_read(
    options: dict[str, Any], code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.onnx").touch()
    usual: dict[str, Any] = {"models": ("m.onnx",), "contestants": Contestants("torch,onnxruntime"), "batch": (1, 2)}
    with pytest.raises(InvalidRequest) as refused:
        plan_of(RaceRequest(**{**usual, **options}), available_cores=CORES)
    assert (refused.value.code, len(str(refused.value).splitlines())) == (code, 1)


@pytest.mark.usefixtures("_opens_nothing")
def test_never_is_refused_for_one_work_before_its_model_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.onnx").touch()
    done = invoke("compare", "m.onnx", "--on", "torch,onnxruntime", "--fresh", "never", "--dry-run")
    assert isinstance(done.exception, InvalidRequest)
    assert done.exception.code == "E_REQUEST"


def test_a_baseline_on_one_of_several_files_is_known_once_they_are_read() -> None:
    request = RaceRequest(models=("mlp",), contestants=Contestants("torch"), baseline="torch:file=a.onnx")
    plan_of(request, available_cores=CORES)
