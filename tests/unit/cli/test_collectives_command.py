"""``fairlap collectives`` refuses what it cannot measure, and reports what failed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from command_line import invoke, refusal
from fairlap.scenarios.collectives.race import collectives_run as collectives
from fairlap.scenarios.collectives.race.collectives_run import CollectivesPlan, CollectivesRun, Trial


def plan_and_run(monkeypatch: pytest.MonkeyPatch, failures: dict[str, str]) -> list[CollectivesPlan]:
    plans: list[CollectivesPlan] = []

    def run(_on: object, plan: CollectivesPlan, _report: object) -> CollectivesRun:
        plans.append(plan)
        trials = [Trial("mpi", "all_reduce", size, 0, 1e4 + size) for size in plan.sizes]
        return CollectivesRun(plan, trials, failures, dict.fromkeys(failures, "E_RANK"), {"mpi": "4"}, {})

    monkeypatch.setattr(collectives, "run_collectives", run)
    return plans


def test_what_is_asked_is_what_is_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(8)))
    plans = plan_and_run(monkeypatch, {})
    file = tmp_path / "found.csv"
    options = ("--processes", "4", "--threads", "2", "--sizes", "1MiB,4KB,4KB", "--operations", "all_reduce")
    done = invoke("collectives", "--on", "mpi", *options, "--blocks", "3", "--seed", "7", "--json", "-o", str(file))
    assert done.exit_code == 0
    [plan] = plans
    assert (plan.ranks, plan.threads, plan.sizes, plan.blocks) == (4, 2, (4000, 2**20), 3)
    assert (plan.operations, plan.seed) == (("all_reduce",), 7)
    assert len(json.loads(done.stdout)["rows"]) == 2
    assert len(file.read_text().splitlines()) == 3


def test_ranks_without_cores_of_their_own_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    plans = plan_and_run(monkeypatch, {})
    for options in (("--processes", "3"), ("--processes", "2", "--threads", "2"), ("--threads", "99")):
        assert refusal("collectives", "--on", "mpi", *options).code == "E_SCALE"
    assert plans == []


def test_a_framework_without_collective_operations_is_refused_before_the_race(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = plan_and_run(monkeypatch, {})
    error = refusal("collectives", "--on", "onnxruntime,mpi,openvino")
    assert (error.code, str(error).partition(":")[0]) == ("E_SCALE", "onnxruntime, openvino")
    assert plans == []


def test_a_framework_that_failed_makes_the_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    plan_and_run(monkeypatch, {"torch": "rank 1 was ended by SIGKILL"})
    done = invoke("collectives", "--on", "mpi,torch")
    assert done.exit_code == 1
    assert "SIGKILL" in done.stdout


@pytest.mark.parametrize(
    "options",
    [*(("--sizes", size) for size in ("3", "6B", "4XB", ",", "9GB")), ("--operations", "scatter")],
)
def test_sizes_and_operations_that_are_not_known_are_refused(options: tuple[str, ...]) -> None:
    assert invoke("collectives", *options).exit_code == 2


@pytest.mark.parametrize("name", ["torch:compile", "torch:threads=2", "torch:best", "./program:fast"])
def test_what_is_of_models_is_refused_since_no_model_runs(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    plans = plan_and_run(monkeypatch, {})
    assert refusal("collectives", "--on", f"mpi,{name}").code == "E_CONTESTANT"
    assert plans == []


def test_one_rank_exchanges_nothing_and_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = plan_and_run(monkeypatch, {})
    assert refusal("collectives", "--on", "mpi", "--processes", "1").code == "E_REQUEST"
    assert plans == []


@pytest.mark.parametrize("options", [("--processes", "0"), ("--threads", "0"), ("--blocks", "0"), ("--on", "horovod")])
def test_numbers_and_frameworks_that_cannot_be_are_refused(options: tuple[str, ...]) -> None:
    assert refusal("collectives", *options).code == "E_REQUEST"


def test_an_output_of_another_format_is_refused(tmp_path: Path) -> None:
    assert refusal("collectives", "-o", str(tmp_path / "found.parquet")).code == "E_OUTPUT_FORMAT"
