"""Frameworks are found by name, and looking for one imports none."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from fairlap.errors import InvalidRequest
from fairlap.frameworks import registry
from fairlap.frameworks.contract import Framework, Settings
from fairlap.frameworks.registry import framework_at, framework_named, framework_names, is_importable
from fairlap.launch.environments import InstallFailed
from fairlap.launch.runners import NoRoute, requirements_of, runners_for
from fairlap.request.names import ContestantName, contestant_named
from fairlap.request.work import Precision

NAMES = [
    *(
        "executorch",
        "jax",
        "litert",
        "llama-cpp",
        "mpi",
        "mxnet",
        "onnxruntime",
        "onnxruntime-genai",
        "openvino",
        "openvino-genai",
        "paddle",
        "python",
    ),
    *("tensorflow", "tensorrt", "tinygrad", "torch"),
    *("diffrax", "scipy", "tensorflow-probability", "torchdiffeq"),
    *("gymnasium", "gymnax", "numpy"),
]
HEAVY = {
    *(
        "ai_edge_litert",
        "cyllama",
        "executorch",
        "jax",
        "jaxlib",
        "mxnet",
        "onnx",
        "onnxruntime",
        "onnxruntime_genai",
        "openvino",
        "openvino_genai",
    ),
    *("paddle", "mpi4py", "tensorflow", "tensorrt", "tinygrad", "torch"),
    *("diffrax", "tensorflow_probability", "torchdiffeq"),
    *("gymnasium", "gymnax"),
}


def test_our_frameworks_are_listed_in_order() -> None:
    listed = framework_names()
    assert listed == sorted(listed)
    assert set(NAMES) <= set(listed)


@pytest.mark.parametrize("name", NAMES)
def test_an_adapter_bears_its_name_and_pins_what_it_was_tested_with(name: str) -> None:
    framework = framework_named(name)
    assert framework.name == name
    assert framework.variants[0] == ""
    variables = framework.environment_for(Settings(threads=3))
    assert all(isinstance(value, str) for value in variables.values())
    assert all("==" in package for package in framework.packages)


@pytest.fixture(scope="module")
def imported() -> dict[str, list[str]]:
    """Find what each adapter imports of the frameworks, one after the other in a new process."""
    program = (
        "import json, sys; from fairlap.frameworks.registry import framework_named, is_importable\n"
        "before, found = set(sys.modules), {}\n"
        f"for name in {NAMES!r}:\n"
        "    is_importable(framework_named(name))\n"
        f"    found[name] = sorted({HEAVY!r} & set(sys.modules) - before)\n"
        "    before = set(sys.modules)\n"
        "print(json.dumps(found))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.sanitized
@pytest.mark.parametrize("name", NAMES)
def test_importing_an_adapter_imports_no_framework(name: str, imported: dict[str, list[str]]) -> None:
    assert imported[name] == []


@pytest.mark.sanitized
def test_only_the_adapter_asked_for_is_imported() -> None:
    program = (
        "import sys; from fairlap.frameworks.registry import framework_named; framework_named('torch');"
        "print('fairlap.frameworks.libraries.jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_an_unknown_name_is_refused_with_near_ones() -> None:
    with pytest.raises(InvalidRequest, match="tensorflow"):
        framework_named("tensorfow")
    with pytest.raises(InvalidRequest, match="fairlap list frameworks"):  # nothing is near
        framework_named("qqqq")


@pytest.mark.parametrize(("name", "reason"), [("horovod", "0.28.1")])
def test_a_framework_that_cannot_be_supported_is_refused_with_the_reason(name: str, reason: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        framework_named(name)
    assert refused.value.code == "E_REQUEST"
    assert reason in str(refused.value)


def test_a_package_may_bring_an_adapter_for_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_BUILT_IN", {"horovod": registry._BUILT_IN["torch"]})
    assert framework_named("horovod").name == "torch"


def test_a_broken_adapter_of_another_package_is_reported_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    places = {"gone": "no_such_package.adapter:Gone", "odd": "fairlap.errors:InvalidRequest"}
    monkeypatch.setattr(registry, "_BUILT_IN", places)
    with pytest.raises(InvalidRequest, match=r"no_such_package\.adapter:Gone"):
        framework_named("gone")
    with pytest.raises(InvalidRequest, match="InvalidRequest"):
        framework_named("odd")


@pytest.mark.parametrize(
    ("module", "there"), [("json", True), ("no_such_module", False), ("no_such.module", False), ("json.tool", True)]
)
def test_a_framework_is_here_when_its_module_is(module: str, there: bool) -> None:
    made: type[Framework] = type("Made", (Framework,), {"name": "made", "module": module})
    assert is_importable(made) is there


@pytest.mark.parametrize("place", ["no_such_module:X", "math:nothing", "math:pi", "builtins:int"])
def test_a_place_without_an_adapter_is_refused_by_the_place(place: str) -> None:
    with pytest.raises(InvalidRequest, match=place):
        framework_at(place)


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("torch", "torch"),
        ("jax", "jax[cuda13]"),
        ("tensorflow", "tensorflow[and-cuda]"),
        ("onnxruntime", "onnxruntime-gpu[cuda,cudnn]"),
    ],
)
def test_an_environment_for_a_gpu_gets_the_packages_for_it(name: str, package: str) -> None:
    framework = framework_named(name)
    for device in ("cuda", "cuda:1"):
        assert framework.packages_for(device)[0].partition("==")[0] == package
        [first, *_] = requirements_of(contestant_named(f"{name}==9.9.9"), framework, device)
        assert first == f"{package}==9.9.9"
    assert framework.packages_for("cpu") == framework.packages


@pytest.mark.parametrize(("name", "tool"), [("torch:compile", "torchao"), ("openvino", "nncf")])
def test_an_environment_for_int8_gets_the_tool_that_quantizes(name: str, tool: str) -> None:
    contestant = contestant_named(f"{name}==9.9.9")
    framework = framework_named(contestant.framework)

    def tools(named: ContestantName, precisions: tuple[Precision, ...]) -> list[str]:
        return [each for each in requirements_of(named, framework, "cpu", precisions) if each.startswith(tool)]

    assert len(tools(contestant, ("fp32", "int8"))) == 1
    assert tools(contestant, ("fp32",)) == []
    exact, quantized = contestant.across(("fp32", "int8"))
    assert (len(tools(exact, ("fp32", "int8"))), len(tools(quantized, ("fp32", "int8")))) == (0, 1)


@pytest.mark.parametrize(("device", "package"), [("cuda:1", "onnxruntime-gpu[cuda,cudnn]"), ("cpu", "onnxruntime")])
def test_a_contestant_with_a_version_gets_an_environment_for_the_device_of_the_race(
    device: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []

    def environment_with(requirements: tuple[str, ...], *_: object) -> object:
        asked.append(requirements)
        raise InstallFailed("nothing is downloaded here")

    monkeypatch.setattr("fairlap.launch.runners.environment_with", environment_with)
    contestants = (contestant_named("onnxruntime==1.20.0"),)
    with ExitStack() as stack:
        [runner] = runners_for(contestants, 1, device, tmp_path, stack, lambda _: None)
    assert runner.missing is not None
    [(first, *_)] = asked
    assert first == f"{package}==1.20.0"


@pytest.mark.parametrize(
    ("contestant", "device"),
    [("tensorrt==11.4.0.106", "cpu"), ("onnxruntime==1.20.0:graph", "cpu"), ("litert==2.2.0", "cuda")],
)
def test_nothing_is_installed_for_a_framework_that_does_not_run_on_the_device_of_the_race(
    contestant: str, device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def environment_with(*_: object) -> object:
        raise AssertionError("it was installed")

    monkeypatch.setattr("fairlap.launch.runners.environment_with", environment_with)
    with ExitStack() as stack:
        [runner] = runners_for((contestant_named(contestant),), 1, device, tmp_path, stack, lambda _: None)
    assert isinstance(runner.missing, NoRoute)
    assert runner.missing.code == "E_UNSUPPORTED"


def test_a_framework_says_on_what_its_variants_run() -> None:
    runtime, tensorrt = framework_named("onnxruntime"), framework_named("tensorrt")
    assert [runtime.why_not_on(device, "") for device in ("cpu", "cuda:1")] == ["", ""]
    assert "onnxruntime:graph" in runtime.why_not_on("cpu", "graph")
    assert runtime.why_not_on("cuda", "graph") == ""
    assert "--device cuda" in tensorrt.why_not_on("cpu", "")
    assert framework_named("openvino").why_not_on("cuda", "")
