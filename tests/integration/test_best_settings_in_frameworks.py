"""Options that a search tries reach the real frameworks, and what it finds is raced and used again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.render.outputs import read_rows
from fairlap.request.work import Work
from fairlap.store.run_file import load_run
from one_block import processes_of_one_block

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(sys.platform != "linux", reason="workers are found and ended through /proc"),
]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def require(*names: str) -> None:
    for name in names:
        if not is_importable(framework_named(name)):
            pytest.skip(f"{name} is not installed here")


def in_force(contestants: str) -> dict[str, dict[str, str]]:
    found = processes_of_one_block(contestants, Work("convnet", 2), seconds=0.05)
    assert {name: process.message for name, process in found.items() if not process.finished} == {}
    return {name: process.in_force for name, process in found.items()}


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


def test_a_search_is_in_the_run_file_and_a_rerun_uses_what_it_found(tmp_path: Path) -> None:
    require("onnxruntime")
    asked = ["compare", "mlp", "--on", "onnxruntime,onnxruntime:best", "--blocks", "1", "--seconds", "0.05"]
    more = ["--threads", "2", "--best-budget", "60s", "--seed", "1", "-o", "run.json", "-o", "rows.csv"]
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core leaves no fewer threads to try")
    first = fairlap([*asked, *more], tmp_path)
    assert first.returncode == 0, first.stderr
    run = load_run(tmp_path / "run.json")
    [search] = run.searches
    assert search.contestant == "onnxruntime:best"
    assert search.space["threads"] == ("1",)
    tried = {tuple(each.settings.items()): each for each in search.tries if each.round == 1}
    assert tried[("spinning", "off"),].ratio
    assert tried[()].call_ns.keys() == {"mlp · infer · fp32 · batch 1"}
    name = next(each for each in run.plan.contestants if each.best)
    assert dict(name.options) | ({"variant": name.variant} if name.variant else {}) == search.found
    rows = {row.contestant: row for row in read_rows(tmp_path / "rows.csv")}
    assert rows["onnxruntime:best"].division == "best"
    assert rows["onnxruntime:best"].settings["threads"] == search.found.get("threads", "2")
    again = fairlap(["rerun", "run.json", "-o", "again.json"], tmp_path)
    assert again.returncode == 0, again.stderr
    assert "best settings" not in again.stderr
    assert load_run(tmp_path / "again.json").plan == run.plan


def fairlap(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fairlap", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=folder)
