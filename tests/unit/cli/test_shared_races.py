"""Races of a suite that differ in their works alone are one run, whose processes take the works of all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import invoke
from fairlap.cli.races.shared_races import PlannedRace, in_groups, joined
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.request.names import Contestants
from fairlap.request.suite import RaceOfSuite
from fairlap.store.store import open_store
from installed_package import install_frameworks
from machine_marks import needs_proc

MODELS = ("mlp", "gemm", "softmax")


def planned(model: str, **options: Any) -> PlannedRace:
    usual: dict[str, Any] = {
        "contestants": Contestants("torch,onnxruntime"),
        "blocks": 6,
        "threads": 1,
        "fresh": "first",
    }
    race = RaceOfSuite(**{"name": model, "models": (model,), **usual, **options})
    return PlannedRace(race, race, plan_of(race, available_cores=(0,)))


def grouped(*races: PlannedRace, runs: tuple[str, ...] = ()) -> list[list[str]]:
    return [[race.race.name for race in group] for group in in_groups(races, runs or ("",) * len(races))]


def test_races_with_as_many_blocks_are_one_plan_with_the_works_of_all() -> None:
    races = [planned(model) for model in MODELS]
    assert grouped(*races) == [[*MODELS]]
    plan = joined(races)
    assert [work.model for work in plan.works] == [*MODELS]
    assert len(plan.blocks) == 18
    assert sum(block.processes_of is not None for block in plan.blocks) == 10
    assert joined(races[:1]) == races[0].plan


@pytest.mark.parametrize(
    "options",
    [
        {"blocks": 7},
        {"blocks": None},
        {"budget": 10.0},
        {"target": 0.02},
        {"baseline": "torch"},
        {"baseline": "torch", "max_slowdown": 0.02},
        {"output": (Path("one.json"),)},
        {"seconds": 0.2},
        {"seed": 3},
        {"contestants": Contestants("onnxruntime,torch")},
        {"conditions": "both"},
        {"profile": True},
    ],
)
def test_a_race_that_differs_in_anything_else_runs_by_itself(options: dict[str, Any]) -> None:
    assert grouped(planned("mlp"), planned("gemm", **options), planned("softmax")) == [["mlp", "softmax"], ["gemm"]]


def test_races_that_cannot_share_processes_stay_apart() -> None:
    assert grouped(planned("mlp", fresh="every"), planned("gemm", fresh="every")) == [["mlp"], ["gemm"]]
    on_jax = {"contestants": Contestants("torch,jax"), "fresh": "every"}
    assert grouped(planned("mlp", **on_jax), planned("gemm", **on_jax)) == [["mlp"], ["gemm"]]
    assert grouped(planned("mlp"), planned("mlp", name="again")) == [["mlp"], ["again"]]
    assert grouped(planned("mlp"), planned("gemm"), runs=("of-mlp", "")) == [["mlp"], ["gemm"]]


SUITE = """
contestants = ["serial", "serial:{variant}"]
blocks = 2
fresh = "first"
threads = 1
seconds = "20ms"
[[race]]
name = "one"
models = ["mlp"]
batch = 1
[[race]]
name = "three"
models = ["mlp"]
batch = 3
"""


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize("variant", ["leaves", "wrong"])
def test_each_race_of_a_shared_run_has_its_own_result(
    variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_frameworks(tmp_path / "installed", monkeypatch, {"serial": "serial_framework:Serial"})
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    (tmp_path / "suite.toml").write_text(SUITE.format(variant=variant))
    done = invoke("suite", "run", tmp_path / "suite.toml", "-q", "--json")
    found = json.loads(done.stdout)
    assert (found["state"], found["works"], done.exit_code) == ("finished", 2, 0)
    assert len({race["run"] for race in found["races"]}) == 1
    outcomes = {
        race["name"]: [each["outcome"] for each in work["contestants"]]
        for race in found["races"]
        for work in race["works"]
    }
    bad = "disqualified" if variant == "wrong" else "finished"
    assert outcomes == {"one": ["finished"] * 2, "three": ["finished", bad]}
    with open_store() as store:
        run = store.load(found["races"][0]["run"])
    assert len(run.plan.works) == 2
    assert max(process.works_before for process in run.processes) == (0 if variant == "wrong" else 1)
