"""Suites that come with fairlap are found by name, can all be planned, and have the sizes and bounds of the field."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import invoke, output, refusal
from fairlap.cli.races.suite_races import _request_alone
from fairlap.models.operations.listed import listed_operations, operations_matching
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.request.published_suites import published_suites
from fairlap.request.suite import read_suite
from published_schemas import checked

RACES = [(name, race) for name, file in published_suites().items() for race in read_suite(file).races]


def test_they_are_listed_with_their_races_and_tags() -> None:
    found = {each["name"]: each for each in checked(output("list", "suites", "--json"))["suites"]}
    assert set(found) == {"dawnbench", "deepbench", "mlperf-inference", "mlperf-tiny"}
    for name, each in found.items():
        assert each["races"] == sum(suite == name for suite, _ in RACES)
        assert "quick" in each["tags"]
        assert Path(each["file"]).is_file()
    assert all(name in output("list", "suites") for name in found)


@pytest.mark.parametrize("name", sorted(published_suites()))
def test_a_name_lists_the_races_of_a_tag(name: str) -> None:
    listed = checked(output("suite", "list", name, "--tag", "quick", "--json"))
    assert Path(listed["file"]) == published_suites()[name]
    assert len(listed["races"]) == 1
    assert len(listed["left_out"]) == sum(suite == name for suite, _ in RACES) - 1


def test_a_file_of_that_name_comes_first_and_a_mistyped_name_gets_the_nearest_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    error = refusal("suite", "list", "deepbnch")
    assert (error.code, "deepbench" in str(error)) == ("E_SUITE", True)
    (tmp_path / "deepbench").mkdir()
    assert invoke("suite", "list", "deepbench").exit_code != 0  # a folder without benchmarks


@pytest.mark.slow_but("dawnbench", "deepbench:quick", "deepbench:device", "mlperf")
@pytest.mark.parametrize(("name", "race"), RACES, ids=[f"{name}:{race.name}" for name, race in RACES])
def test_every_race_can_be_planned(name: str, race: object) -> None:
    plan = plan_of(_request_alone(race), lambda _: None)  # type: ignore[arg-type]
    assert plan.works
    assert len(plan.contestants) >= 2


@pytest.mark.parametrize("part", ["device", "server", "training"])
def test_deepbench_has_every_size_of_its_lists_once(part: str) -> None:
    races = [race for name, race in RACES if name == "deepbench" and part in race.tags]
    found = [each.operation.name for race in races for model in race.models for each in operations_matching(model)]
    listed = [each.operation.name for each in listed_operations() if f"deepbench-{part}" in each.lists]
    assert sorted(found) == sorted(listed)


MLPERF = {"resnet50": "resnet50", "detection": "retinanet", "bert": "bert", "dlrm": "dlrm-v2"}


@pytest.mark.slow
def test_bounds_and_scenarios_of_mlperf_are_those_in_loadgen_s_own_settings() -> None:
    loadgen = pytest.importorskip("mlperf_loadgen", reason="`make test` installs it where there is a wheel")
    library = Path(loadgen.__file__).read_bytes().decode("latin-1")
    settings = dict(re.findall(r"([\w.*-]+) = (\d+)", library))
    races = {race.name: race for name, race in RACES if name == "mlperf-inference"}
    for own, theirs in MLPERF.items():
        load = races[f"{own}/server"].load
        assert load is not None
        assert load.p99 is not None
        assert 1000 * float(load.p99) == float(settings[f"{theirs}.Server.target_latency"])
    tokens = races["generation/server"].load
    assert tokens is not None
    assert tokens.first_token is not None
    for model in ("llama2-70b", "llama3_1-8b"):
        assert 1000 * float(tokens.first_token) == float(settings[f"{model}.Server.ttft_latency"])
    assert settings["*.Server.target_latency_percentile"] == "99"
    assert settings["*.MultiStream.samples_per_query"] == "8"
    assert settings["3d-unet.*.sample_concatenate_permutation"] == "1"
    assert "3d-unet.Server.target_latency" not in settings
    assert {name for name in races if name.startswith("segmentation/")} == {
        "segmentation/single-stream",
        "segmentation/offline",
    }
    for name, race in races.items():
        scenario = None if race.load is None else race.load.scenario
        assert scenario in (name.rpartition("/")[2], None)
