"""Suites of other tools between two sides: what is discovered races, what is skipped or broken is one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmark_suites import ASV_NAMES, GOOGLE, asv_folder, commit, git, project, pytest_folder
from click.testing import Result
from command_line import invoke, refusal
from fairlap.errors import FairlapError
from fairlap.frameworks.programs.reported_times import reported_time
from fairlap.suite.found_suites import nvbench_runs
from published_schemas import checked
from suites import given_races

SOME = "time_solve|time_function|track_"  # of asv's
SKIPPED = {"suite.Refuses.time_pair(param1=1, param2=None)", "suite.Refuses.time_pair(param1=2, param2=None)"}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for side in ("base", "change"):
        project(tmp_path / side, steps=5)
    asv_folder(tmp_path)
    pytest_folder(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(suite: object, *options: object, base: object = "base", change: object = "change") -> Result:
    return invoke("suite", "run", suite, "--base", base, "--change", change, "--threads", 1, "-q", "--json", *options)


def document(done: Result) -> dict[str, Any]:
    return checked(done.stdout)


def by_name(found: dict[str, Any]) -> dict[str, Any]:
    return {race["name"]: race for race in found["races"]}


@pytest.mark.slow_but("given1")
@pytest.mark.parametrize(("given", "status"), [({}, 0), ({"time_function": 1.3}, 1)])
def test_benchmarks_of_asv_race_by_a_regular_expression_and_the_slower_one_is_found(
    place: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, float], status: int
) -> None:
    races = given_races(monkeypatch, change=given)
    done = run("benchmarks", "--only", SOME)
    found = document(done)
    names = {"suite.TimeSuite.time_solve(n=100)", "suite.TimeSuite.time_solve(n=1000)", "suite.time_function"}
    names |= {"suite.Cached.track_iterations"}
    assert (done.exit_code, found["exit_status"], set(by_name(found))) == (status, status, names)
    slower = [name for name, race in by_name(found).items() if race["findings"][0]["status"] == "slower"]
    assert slower == [f"suite.{name}" for name in given]
    assert {plan.alpha for plan in races.plans.values()} == {0.05 / 4}
    assert {each["name"] for each in found["left_out"]} == set(ASV_NAMES) - names


@pytest.mark.slow
def test_skipped_benchmarks_are_left_out_with_their_reason_and_broken_ones_fail_alone(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    races = given_races(monkeypatch)
    (place / "benchmarks" / "lost.py").write_text("import no_such_module\n")
    found = document(run("benchmarks", "--only", "Refuses", "--only", "Broken", "--only", "lost"))
    assert found["exit_status"] == 3
    left_out = {each["name"]: each["why"] for each in found["left_out"]}
    assert all("no text, no benchmark" in left_out[name] for name in SKIPPED)
    failed = {name: (race["state"], race["code"]) for name, race in by_name(found).items() if race["state"] == "failed"}
    assert failed == {"suite.Broken.time_broken": ("failed", "E_BASELINE"), "lost": ("failed", "E_BASELINE")}
    assert len(races.ran) == 2


def test_commits_of_the_repository_race_and_their_checkouts_are_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, steps=5)
    commit(tmp_path)
    project(tmp_path, steps=6)
    asv_folder(tmp_path)  # the base does not have it
    head = commit(tmp_path)
    monkeypatch.chdir(tmp_path)
    races = given_races(monkeypatch)
    found = document(run("benchmarks", "--only", "time_function", base="HEAD~1", change=head))
    assert (found["exit_status"], found["base"], found["change"]) == (0, "HEAD~1", head)
    sides = [Path(dict(each.options)["path"]) for each in races.plans["time_function"].contestants]
    assert len(set(sides)) == 2
    assert not any(side.exists() for side in sides)
    assert len(git(tmp_path, "worktree", "list").splitlines()) == 1


@pytest.mark.slow
def test_tests_with_a_benchmark_race_and_groups_are_tags(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given_races(monkeypatch)
    found = document(run("tests", "--tag", "sizes"))
    assert set(by_name(found)) == {f"test_speed.py::test_sizes[{n}]" for n in (100, 200)}
    assert found["exit_status"] == 0
    assert {race["tags"][-1] for race in found["races"]} == {"sizes"}


@pytest.mark.slow
def test_programs_of_google_benchmark_race_by_what_they_report(place: Path) -> None:
    """These run: the program of the change prints times that are 30 % longer for one of its two benchmarks."""
    times = {"base": {"BM_Sum/8": 10.0, "BM_Copy<int>": 5.0}, "change": {"BM_Sum/8": 13.0, "BM_Copy<int>": 5.0}}
    for side, own in times.items():
        (place / side / "bench").write_text(GOOGLE)
        (place / side / "bench").chmod(0o755)
        (place / side / "speed.txt").write_text(json.dumps(own))
    listed = checked(invoke("suite", "list", "change/bench", "--json").stdout)
    assert [race["name"] for race in listed["races"]] == ["BM_Sum/8", "BM_Copy<int>"]
    done = run("change/bench", "--only", "BM_Sum", "--no-store")
    found = by_name(document(done))
    assert done.exit_code == 1
    assert found["BM_Sum/8"]["findings"][0]["ratio"] == pytest.approx(1.3)


def test_what_is_no_suite_or_no_side_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given_races(monkeypatch)
    (place / "empty").mkdir()
    (place / "suite.toml").write_text('[[race]]\nname = "one"\ncall = "hot:solve"\n')
    for suite, options in (
        ("empty", {}), ("gone", {}), ("benchmarks", {"base": "no-such-commit"}), ("benchmarks", {"base": "change"}),
        ("suite.toml", {}),
    ):  # fmt: skip
        done = run(suite, **options)  # a suite of fairlap has its threads in its file
        assert (done.exit_code, "E_SUITE" in done.output) == (3, True), done.output
    assert refusal("suite", "run", "benchmarks").code == "E_SUITE"  # there are no contestants
    assert run("benchmarks", "--only", "no_such_name").exit_code == 3


WORDS, PARTS = ("- slower", "- not comparable"), ("function", "broken")
SMALL = "from hot import solve\ndef time_function():\n    solve(9)\ndef time_broken():\n    raise ValueError(5)\n"


def test_a_pull_request_races_them_as_well(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    races = given_races(monkeypatch, change={"time_function": 1.3}, peak_of_change=0.8)
    monkeypatch.chdir(place / "change")
    (asv_folder(place / "change") / "suite.py").write_text(SMALL)
    (place / "change" / "gate.toml").write_text('max_slowdown = "20%"\n')
    options = ("--suite", "benchmarks", "--base", "../base", "--no-comment", "--body", "comment.md", "--threads", 1)
    done = invoke("pull-request", *options)
    assert done.exit_code == 1
    assert {plan.gate.max_slowdown for plan in races.plans.values() if plan.gate} == {0.2}
    lines = (place / "change" / "comment.md").read_text().splitlines()
    kinds = [line for line in lines if line.startswith("- ")]
    assert sum("25 % more peak memory" in line for line in lines) == 1
    assert [(line.startswith(word), part in line) for line, word, part in zip(kinds, WORDS, PARTS, strict=False)] == [
        (True, True)
    ] * 2


LISTED = """# Devices

## [0] `A device`
* SM Version: 900 (PTX Version: 900)

# Benchmarks

## [0] `copy` (4 configurations)

### Axes

* `Elements` : int64 [pow2]
  * `20` (2^20 = 1048576)
  * `24` (2^24 = 16777216)
* `T` : type
  * `I8` (int8_t)
  * `F64` (double)

## [1] `empty` (1 configurations)

### Axes

"""


def test_each_combination_that_nvbench_lists_is_a_benchmark() -> None:
    found = dict(nvbench_runs(LISTED))
    assert list(found) == [f"copy [Elements[pow2]={n} T={t}]" for n in (20, 24) for t in ("I8", "F64")] + ["empty"]
    assert found["copy [Elements[pow2]=24 T=I8]"][-4:] == ["--axis", "Elements[pow2]=24", "--axis", "T=I8"]


@pytest.mark.parametrize(("tag", "ns"), [("nv/cold/time/gpu/mean", 12_500.0), ("nv/cpu_only/time/cpu/mean", 12_500.0)])
def test_the_report_of_nvbench_is_read_as_it_is_documented(tag: str, ns: float) -> None:
    value = {"name": "value", "type": "float64", "value": "1.25e-05"}
    axes = [{"name": "Elements", "type": "int64", "value": "1048576"}]
    time = {"tag": tag, "name": "Time", "hint": "duration", "data": [value]}
    summaries = [{"tag": "nv/cold/sample_size", "data": []}, time]
    states = [{"device": 0, "axis_values": axes, "summaries": summaries, "is_skipped": False}]
    skipped = [{"axis_values": None, "summaries": None, "is_skipped": True, "skip_reason": "too large"}]
    benchmarks = [{"name": "copy", "states": states}, {"name": "none", "states": skipped}]
    report = json.dumps({"meta": {"version": {"json": "1.0.0"}}, "devices": [{"id": 0}], "benchmarks": benchmarks})
    assert reported_time(report, "nvbench", "copy [Elements=1048576]")[1] == pytest.approx(ns)
    with pytest.raises(FairlapError, match="too large"):
        reported_time(report, "nvbench", "none")
