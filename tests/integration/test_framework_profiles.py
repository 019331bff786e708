"""Each framework's own profiler, in processes that are not timed; and the slow operator between two runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fairlap.cli import cli
from fairlap.launch.worker_process import WorkerProcess
from fairlap.race.around_blocks.after_blocks import Findings
from fairlap.race.planning.plan import Measuring
from fairlap.race.race import Race
from fairlap.request.fields.training import Schedule, Sgd, Training
from fairlap.request.work import Mode, Work
from fairlap.store.runs.run_file import save_run
from machine_marks import needs_proc
from planted_runs import CONTESTANT, install_planted, release
from small_races import run_race, small_plan
from thorough import thorough_where

pytestmark = [pytest.mark.sanitized, needs_proc]

WORK = Work("mlp", 16)
WITHOUT_TIMELINE = ("openvino",)
CONTESTANTS = {
    "torch": {"aten::addmm"},
    "onnxruntime": {"Gemm", "LayerNormalization"},
    "torch:compile": {"aten::addmm"},
    "openvino": {"FullyConnected"},
    "jax": set(),  # XLA's names are its own; most operations are fusions
    "tensorflow": {"MatMul"},
    "tensorflow:graph": set(),
    "tensorflow:xla": set(),
}


def raced(contestants: str, work: Work, traces: Path | None = None) -> Race:
    plan = small_plan(contestants, work, conditions="controlled", measuring=Measuring(seconds=0.1), profile_processes=1)
    return run_race(plan, findings=Findings(traces=traces))


@pytest.mark.thorough
def test_every_layer_that_openvino_runs_is_listed_however_short_it_is() -> None:
    [found] = raced("openvino", Work("tabular", 32)).findings.profiles
    assert found.profile is not None, found.message
    by_name = {each.name: each for each in found.profile.operators}
    assert by_name["FullyConnected"].calls == 3
    assert found.profile.operators_ns <= 1.1 * found.profile.call_ns


@pytest.mark.slow
@pytest.mark.parametrize("contestant", thorough_where(lambda each: each != "onnxruntime", CONTESTANTS))
def test_the_profiler_of_a_framework_names_its_operators_and_their_times(contestant: str, tmp_path: Path) -> None:
    race = raced(contestant, WORK, tmp_path)
    [found] = race.findings.profiles
    assert found.profile is not None, found.message
    profile = found.profile
    operators = {operator.name: operator for operator in profile.operators}
    assert CONTESTANTS[contestant] <= set(operators)
    assert {"matmul", "fused"} & {operator.kind for operator in profile.operators}
    assert 0 < profile.operators_ns <= 1.1 * profile.call_ns  # one thread: nothing runs in parallel
    assert profile.calls >= 5
    assert profile.plain_call_ns > 0
    assert max(operator.calls for operator in profile.operators) >= 1
    traces = list(tmp_path.glob("*.trace.json"))
    if contestant in WITHOUT_TIMELINE:
        assert traces == []
        return
    [trace] = traces
    document = json.loads(trace.read_bytes())
    events = document if isinstance(document, list) else document["traceEvents"]
    assert sum(each.get("ph") == "X" for each in events) > profile.calls


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["grad", "train"])
def test_gradients_and_steps_of_training_are_profiled_too(mode: Mode) -> None:
    training = Training(Sgd(0.01), Schedule()) if mode == "train" else None
    race = raced("torch,torch:compile,jax,tensorflow:graph", Work("mlp", 16, mode, training=training))
    for each in race.findings.profiles:
        assert each.profile is not None, f"{each.contestant}: {each.message}"
        assert {"matmul", "fused"} & {operator.kind for operator in each.profile.operators}


@pytest.mark.thorough
def test_no_profiler_is_loaded_or_active_in_a_timed_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_planted(tmp_path / "packages", monkeypatch)
    seen = tmp_path / "seen.jsonl"
    monkeypatch.setenv("FAIRLAP_SEEN", str(seen))
    timed: set[int] = set()
    measure = WorkerProcess.measure

    def measured(worker: WorkerProcess, **given: Any) -> Any:
        timed.add(worker.pid)
        return measure(worker, **given)

    monkeypatch.setattr(WorkerProcess, "measure", measured)
    race = raced(CONTESTANT, WORK)
    assert [each.outcome for each in race.findings.profiles] == ["finished"]
    lines = [json.loads(line) for line in seen.read_text().splitlines()]
    assert timed
    assert timed < {line["pid"] for line in lines}
    after = [line for line in lines if line["pid"] in timed]
    assert len(after) > len(timed)  # asked after the measurement as well as before it
    assert all((line["loaded"], line["active"]) == ([], False) for line in after)


@pytest.mark.thorough
def test_the_operator_that_a_new_release_runs_twice_is_named_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_planted(tmp_path / "packages", monkeypatch)
    work = Work("mlp", 64)
    files = []
    for seed, planted in enumerate(("", "first")):
        run = release(monkeypatch, work, seed, planted)
        files.append(str(tmp_path / f"{seed}.json"))
        save_run(Path(files[-1]), run)
    printed = CliRunner().invoke(cli, ["diff", *files, "--json"])
    assert printed.exit_code == 0, printed.output
    [operators] = json.loads(printed.stdout)["operators"]
    assert operators["changes"][0]["name"] == "aten::addmm"
    assert operators["changes"][0]["low_ns"] > 0
    assert "aten::addmm" in CliRunner().invoke(cli, ["diff", *files]).stdout
