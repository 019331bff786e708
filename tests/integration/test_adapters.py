"""Every adapter does the same work as the float64 reference, on the threads and in the precision asked for."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fairlap.frameworks.contract import Settings
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.models.registry import find
from thorough import thorough_where

pytestmark = [pytest.mark.sanitized, pytest.mark.timeout(300)]

MODEL = "mlp"
PROGRAM = Path(__file__).with_name("adapter_in_a_process.py")
LARGEST_DISAGREEMENT = 1e-3
THREADS = 2
OTHER_LOSS = {"fixed": "second.weight", "loss": "mean_square"}
OPTIONS: dict[str, Any] = {"options": {"provider": "cpu", "spinning": "off", "optimization": "basic"}}
REFUSED_TOO = ("torch", "onnxruntime")  # in the process that answers; others refuse without importing the framework
CONTESTANTS = [
    ("torch", ""),
    ("torch", "compile"),
    ("jax", ""),
    ("tensorflow", ""),
    ("tensorflow", "graph"),
    ("tensorflow", "xla"),
    ("onnxruntime", ""),
    ("openvino", ""),
    ("litert", ""),
]
DEALT = ("torch", "jax", "tensorflow", "onnxruntime")
DIFFERENTIATE = ("torch", "jax", "tensorflow")
DIFFERENTIATING = [each for each in CONTESTANTS if each[0] in DIFFERENTIATE]
THOROUGH = (("torch", "compile"), ("tensorflow", ""), ("tensorflow", "xla"), ("litert", ""))
SLOW = (("tensorflow", "graph"),)  # only to be imported, it takes seconds


def each_of(contestants: list[tuple[str, str]]) -> list[Any]:
    marked = thorough_where(THOROUGH.__contains__, contestants)
    return [
        pytest.param(*each.values, marks=[*each.marks, pytest.mark.slow]) if each.values in SLOW else each
        for each in marked
    ]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def found_by(
    name: str, variant: str = "", mode: str = "infer", precision: str = "fp32", threads: int = 1, **more: Any
) -> dict[str, Any]:
    framework = framework_named(name)
    if not is_importable(framework):
        pytest.skip(f"{framework.module} is not installed here; `make test` installs it and runs this")
    asked = {"model": MODEL, "framework": name, "variant": variant, "mode": mode, "precision": precision, **more}
    together = "" if asked in _asked_together(name, "") else variant
    variables = tuple(framework.environment_for(Settings(threads, together)).items())
    several = _asked_together(name, together) if threads == THREADS else []
    if asked not in several:
        several = [asked]
    found = _printed(json.dumps([{**each, "threads": threads} for each in several]), variables)
    return found[several.index(asked)]


def _asked_together(name: str, variant: str) -> list[dict[str, Any]]:
    """List what the tests ask of every contestant: it is answered in one process, which imports the framework once."""
    usual: dict[str, Any] = {
        "model": MODEL, "framework": name, "variant": variant, "mode": "infer", "precision": "fp32",
    }  # fmt: skip
    several = [usual]
    if name in DIFFERENTIATE:
        several += [{**usual, "mode": "grad"}, {**usual, "mode": "grad", **OTHER_LOSS}]
    if name in ("torch", "jax", "openvino"):
        several.append({**usual, "precision": "bf16"})
    if name == "onnxruntime":
        several.append({**usual, **OPTIONS})
    if name in REFUSED_TOO and not variant:
        several += [{**usual, **asked} for asked, _ in REFUSED[name]]
    return several


def refused_by(name: str, *several: dict[str, Any]) -> list[str]:
    """Ask for all in one process: nothing is prepared that could disturb the next."""
    if name in REFUSED_TOO:
        return [found_by(**{"name": name, "threads": THREADS, **asked})["unsupported"] for asked in several]
    framework = framework_named(name)
    if not is_importable(framework):
        pytest.skip(f"{framework.module} is not installed here; `make test` installs it and runs this")
    usual = {"model": MODEL, "framework": name, "variant": "", "mode": "infer", "precision": "fp32", "threads": 1}
    variables = framework.environment_for(Settings(1))
    found = _printed(json.dumps([{**usual, **asked} for asked in several]), tuple(variables.items()))
    return [each["unsupported"] for each in found]


@functools.cache
def _printed(asked: str, variables: tuple[tuple[str, str], ...]) -> list[dict[str, Any]]:
    """Start a process; several tests read the answer to the same question."""
    command = [sys.executable, str(PROGRAM), asked]
    done = subprocess.run(command, env={**os.environ, **dict(variables)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(("name", "variant"), each_of(CONTESTANTS))
def test_an_adapter_answers_as_the_reference_does_with_the_weights_it_was_given(name: str, variant: str) -> None:
    found = found_by(name, variant, threads=THREADS)
    assert found["wrong"] == []
    assert found["types"] == ["float32"]
    assert found["weights"] == "equal"
    assert ("weights" in found["in_force"]) == (name not in DIFFERENTIATE), "unreadable weights are named"
    assert found["changed"], "other inputs must change the answer"
    assert found["again"], "a second binding must leave the first as it was"
    assert found["in_force"]["precision"] == "fp32"
    cores = len(os.sched_getaffinity(0))
    assert found["in_force"]["threads"] == (str(min(2, cores)) if name == "openvino" else "2"), "it takes no more"
    assert found["version"]
    assert {"import", "build"} <= set(found["phases"])


@pytest.mark.parametrize(("name", "variant"), each_of(CONTESTANTS))
@pytest.mark.parametrize("mode", ["infer", "grad"])
def test_an_adapter_that_moves_its_weights_answers_as_before(name: str, variant: str, mode: str) -> None:
    if mode == "grad" and name not in DIFFERENTIATE:
        pytest.skip(f"{name} has no gradients")
    found = found_by(name, variant, mode=mode, threads=THREADS)
    assert ("dealt" in found) == (name in DEALT)
    assert found.get("dealt", True)
    assert found.get("weights_dealt", "equal") == "equal"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({name for name, _ in CONTESTANTS}))
def test_one_thread_is_one_thread(name: str) -> None:
    assert found_by(name, threads=1)["in_force"]["threads"] == "1"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "variant"), each_of(DIFFERENTIATING))
def test_gradients_are_the_slopes_of_the_reference(name: str, variant: str) -> None:
    found = found_by(name, variant, mode="grad", threads=THREADS)
    assert found["wrong"] == []
    assert found["gradients"] == sorted(weight.name for weight in find(MODEL).spec.weights if weight.trained)
    assert max(found["disagreements"]) < LARGEST_DISAGREEMENT
    assert found["weights"] == "equal"
    assert found["changed"]


@pytest.mark.parametrize(("name", "variant"), each_of(DIFFERENTIATING))
def test_a_fixed_weight_gets_no_gradient_and_a_mean_of_squares_needs_no_labels(name: str, variant: str) -> None:
    found = found_by(name, variant, mode="grad", threads=THREADS, **OTHER_LOSS)
    assert found["wrong"] == []
    assert "second.weight" not in found["gradients"]
    assert len(found["gradients"]) == len(find(MODEL).spec.weights) - 1
    assert max(found["disagreements"]) < LARGEST_DISAGREEMENT


@pytest.mark.parametrize("name", ["torch", "jax", pytest.param("tensorflow", marks=pytest.mark.slow)])
def test_bfloat16_holds_the_rounded_weights_and_answers_within_its_tolerance(name: str) -> None:
    found = found_by(name, precision="bf16", threads=THREADS)
    assert found["wrong"] == []
    assert found["types"] == ["float32"]
    assert found["in_force"]["precision"] == "bf16"
    assert found["weights"] == "equal"


def test_openvino_computes_in_bfloat16_or_says_that_this_cpu_cannot() -> None:
    found = found_by("openvino", precision="bf16", threads=THREADS)
    if "unsupported" in found:
        assert found["unsupported"] == "openvino has no bf16 on this CPU: it lacks the instructions for it"
        return
    assert found["in_force"]["precision"] == "bf16"
    assert found["wrong"] == []
    assert found["weights"] == "equal"


REFUSED: dict[str, list[tuple[dict[str, Any], str]]] = {
    "onnxruntime": [
        ({"precision": "bf16"}, "onnxruntime has no bf16"),
        ({"mode": "grad"}, "onnxruntime has no mode grad"),
        ({"options": {"provider": "cuda"}}, "onnxruntime has no provider 'cuda'; it has cpu"),
        ({"options": {"spinning": "maybe"}}, "onnxruntime has no spinning 'maybe'; it has on, off"),
    ],
    "litert": [({"precision": "bf16"}, "litert has no bf16")],
    "jax": [({"options": {"mode": "fast"}}, "jax has no option 'mode'; it has ")],
    "torch": [
        ({"options": {"mode": "fast"}}, "torch has no option 'mode'; it has memory_format"),
        ({"variant": "compile", "options": {"mode": "fast"}}, "torch has no mode 'fast'; it has "),
    ],
    "tensorflow": [({"device": "gpu"}, "tensorflow runs on cpu or cuda here")],
}


@pytest.mark.slow_but("jax")
@pytest.mark.parametrize("name", REFUSED)
def test_what_an_adapter_cannot_do_is_refused_with_the_reason(name: str) -> None:
    reasons = refused_by(name, *(asked for asked, _ in REFUSED[name]))
    for reason, (_, why) in zip(reasons, REFUSED[name], strict=True):
        assert reason.startswith(why)


def test_options_take_effect_and_are_read_back() -> None:
    in_force = found_by("onnxruntime", threads=THREADS, **OPTIONS)["in_force"]
    assert in_force["providers"] == "CPUExecutionProvider"
    assert in_force["spinning"] == "off"
    assert in_force["calls"].startswith("run_with_iobinding")
    assert in_force["optimization"] == "ORT_ENABLE_BASIC"


@pytest.mark.slow
def test_a_converted_model_is_kept_for_the_next_process() -> None:
    assert found_by("litert")["in_force"]["conversion"]
    _printed.cache_clear()
    assert found_by("litert")["in_force"]["conversion"] == "cached"


def test_jax_lowers_and_compiles_in_phases_of_their_own() -> None:
    assert found_by("jax", threads=THREADS)["phases"] == ["import", "build", "lower", "compile"]


@pytest.mark.slow
def test_litert_reports_how_many_weights_are_left_where_its_converter_folds_them() -> None:
    found = found_by("litert", model="mobilenet_v2")
    assert found["wrong"] == []
    assert found["weights"] == "unknown"
    assert found["in_force"]["weights"].startswith("not read back: the file holds ")


@pytest.mark.slow
def test_xla_runs_on_as_many_threads_as_tensorflow_was_given() -> None:
    assert found_by("tensorflow", "xla", threads=THREADS)["in_force"]["xla_threads"] == "2"
