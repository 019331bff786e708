"""Options that a search tries reach the real frameworks, and what it finds is raced and used again."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from fairlap.errors import InvalidRequest
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.machine.allocators import LIBRARIES, allocator_file
from fairlap.machine.hardware.processor import available_cores_by_node
from fairlap.race.processes.chosen_rounds import with_rounds_of
from fairlap.render.outputs import read_rows
from fairlap.request.names import Contestants, contestant_named
from fairlap.request.work import Work
from fairlap.store.runs.run_file import load_run
from machine_marks import needs_proc
from one_block import processes_of_one_block

pytestmark = [pytest.mark.thorough, needs_proc]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def require(*names: str) -> None:
    for name in names:
        if not is_importable(framework_named(name)):
            pytest.skip(f"{name} is not installed here; `make test-thorough` installs it and runs this")


def in_force(contestants: str, threads: int = 1) -> dict[str, dict[str, str]]:
    if len(os.sched_getaffinity(0)) < threads:
        pytest.skip(f"{threads} threads need as many cores; runs on machines that have them")
    found = processes_of_one_block(contestants, Work("convnet", 2), seconds=0.05, threads=threads)
    assert {name: process.message for name, process in found.items() if not process.finished} == {}
    return {name.text: found[name.text].in_force for name in Contestants(contestants)}


def test_the_memory_format_is_that_of_the_option() -> None:
    require("torch")
    found = in_force("torch:memory_format=contiguous,torch:memory_format=channels_last")
    assert [each["memory_format"] for each in found.values()] == ["contiguous", "channels_last"]


def test_openvino_has_the_hint_the_streams_and_the_pinning_of_the_options() -> None:
    require("openvino")
    found = in_force("openvino,openvino:hint=throughput:pinning=off,openvino:streams=1:pinning=on")
    assert [each["performance_hint"] for each in found.values()] == ["latency", "throughput", "latency"]
    assert [each["pinning"] for each in found.values()][1:] == ["false", "true"]
    assert list(found.values())[2]["streams"] == "1"


def test_torch_has_the_switches_of_its_options() -> None:
    require("torch")
    found = in_force("torch,torch:onednn=off:interop_threads=1,torch:compile:freezing=on")
    assert [each["onednn"] for each in found.values()] == ["on", "off", "on"]
    assert [each.get("freezing") for each in found.values()] == [None, None, "on"]


def test_tensorflow_runs_without_onednn_and_with_more_threads_between_operations() -> None:
    require("tensorflow")
    found = in_force("tensorflow:onednn=on,tensorflow:graph:onednn=off:interop_threads=2", 2)
    assert [each["onednn"] for each in found.values()] == ["on", "off"]
    assert [each["interop_threads"] for each in found.values()] == ["1", "2"]


def test_onnxruntime_runs_branches_at_once_and_without_its_arena() -> None:
    require("onnxruntime")
    found = in_force("onnxruntime,onnxruntime:interop_threads=2:arena=off", 2)
    assert [each["execution_mode"] for each in found.values()] == ["ORT_SEQUENTIAL", "ORT_PARALLEL"]
    assert [each["interop_threads"] for each in found.values()] == ["1", "2"]
    assert [each["memory_arena"] for each in found.values()] == ["on", "off"]


def test_litert_runs_without_xnnpack() -> None:
    require("litert")
    found = in_force("litert,litert:xnnpack=off")
    assert [each["delegate"] for each in found.values()] == ["XNNPACK", "none"]


def test_jax_dispatches_at_once_and_takes_its_flags() -> None:
    require("jax")
    found = list(in_force("jax:ynnpack=on,jax:async_dispatch=off:vector_width=512:ynnpack=off").values())
    assert [each["async_dispatch"] for each in found] == ["true", "false"]
    assert [each["ynnpack"] for each in found] == ["on", "off"]
    assert "vector_width=512" in found[1]["xla_flags"]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="allocators are chosen through glibc")
def test_allocators_are_those_of_the_options_in_any_framework() -> None:
    require("torch", "onnxruntime", "openvino")
    here = [name for name in LIBRARIES if allocator_file(name)]
    asked = ["keep", "one-arena", *here]
    for framework in ("torch", "onnxruntime", "openvino"):
        found = in_force(",".join([framework, *(f"{framework}:allocator={name}" for name in asked)]))
        assert [each.get("allocator", "").partition(" ")[0] for each in found.values()] == ["", *asked]


def test_a_contestant_that_is_bound_to_a_node_runs_on_its_cores() -> None:
    require("onnxruntime")
    nodes = available_cores_by_node()
    if not nodes:
        pytest.skip("this system does not describe its NUMA nodes; runs where /sys does, as on most Linux machines")
    node = min(nodes)
    [found] = in_force(f"onnxruntime:numa={node}").values()
    assert found["numa"].startswith(f"{node}, on {len(nodes[node])} of ")


@pytest.mark.parametrize("name", ["tensorflow:onednn=maybe", "torch:compile:freezing=no"])
def test_an_unknown_value_of_an_option_is_refused_before_anything_starts(name: str) -> None:
    require(name.partition(":")[0])
    with pytest.raises(InvalidRequest, match="it has on, off"):
        processes_of_one_block(name, Work("mlp", 2), seconds=0.05)


@pytest.mark.parametrize("name", ["torch:interop_threads=9", "onnxruntime:provider=xnnpack"])
def test_an_option_that_is_not_available_is_refused_in_one_line(name: str) -> None:
    framework, _, _ = name.partition(":")
    require(framework)
    if "xnnpack" in name:
        import onnxruntime

        if "XnnpackExecutionProvider" in onnxruntime.get_available_providers():
            pytest.skip("this build has XNNPACK; the other case runs in the test above")
    [process] = processes_of_one_block(name, Work("mlp", 2), seconds=0.05).values()
    assert (process.outcome, process.code) == ("unsupported", "E_UNSUPPORTED")
    assert "\n" not in process.message


def test_a_search_is_in_the_run_file_and_a_rerun_uses_what_it_found(tmp_path: Path) -> None:
    require("onnxruntime")
    best = "onnxruntime:best:arena=on:optimization=all:interop_threads=1:allocator=system"  # a small space
    asked = ["compare", "mlp", "--on", f"onnxruntime,{best}", "--blocks", "1", "--seconds", "0.05"]
    more = ["--threads", "2", "--best-budget", "120s", "--seed", "1", "-o", "run.json", "-o", "rows.csv"]
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core leaves no fewer threads to try; it runs where there are two")
    first = fairlap([*asked, *more], tmp_path)
    assert first.returncode == 0, first.stderr
    run = load_run(tmp_path / "run.json")
    [search] = run.searches
    assert search.contestant == best
    assert search.left_out["arena"] == "arena is given"
    assert search.space["threads"] == ("1",)
    tried = {tuple(each.settings.items()): each for each in search.tries if each.round == 1}
    assert tried[("spinning", "off"),].ratio
    assert tried[("provider", "xnnpack"),].why.endswith("[E_UNSUPPORTED]")
    assert "numa" in search.space or "numa" in search.left_out
    assert tried[()].call_ns.keys() == {work.id for work in run.plan.works}
    name = next(each for each in run.plan.contestants if each.best)
    assert dict(name.options) == dict(contestant_named(best).options) | search.found
    rows = {row.contestant: row for row in read_rows(tmp_path / "rows.csv")}
    assert rows[best].division == "best"
    assert rows[best].found_settings == search.found
    assert rows[best].settings["threads"] == search.found.get("threads", "2")
    again = fairlap(["rerun", "run.json", "-o", "again.json"], tmp_path)
    assert again.returncode == 0, again.stderr
    assert "best settings" not in again.stderr
    assert load_run(tmp_path / "again.json").plan == with_rounds_of(run.plan, run.processes)


def fairlap(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fairlap", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=folder)
