"""PyTorch's operator benchmarks race by the names and configurations that they register.

Beside PyTorch's own folder (its files for addition), all 219 names were those that its ``--list_tests`` prints.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import pytest
from benchmark_suites import project
from fairlap.errors import InvalidRequest
from fairlap.frameworks.suites.child_process import BenchmarkFailed, BenchmarkProcess, Member, Reply
from fairlap.frameworks.suites.tools import TORCH
from fairlap.frameworks.suites.torch_operators import home_of
from fairlap.suite.found_suites import FoundOptions, open_suite
from machine_marks import needs_package
from operator_benchmarks import file_of_operators, operators_folder

pytestmark = needs_package("torch")
WITHIN_S = 120.0
FORWARD, BACKWARD = "pt.add_test.add_M4_cpu", "pt.add_test.add_M4_cpu_bwdall"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write two versions, of which the new one takes ten times as many steps."""
    place = tmp_path_factory.mktemp("place")
    project(place / "old", steps=1)
    project(place / "new", steps=10)
    operators_folder(place)
    return place


def asked(mode: str, place: Path, name: str = "", module: str = "", side: str = "old") -> Reply:
    member = Member(TORCH, str(place / "operators"), name, module)
    with BenchmarkProcess(mode, member, str(place / side)) as process:
        return process.reply(WITHIN_S)


@pytest.mark.slow
def test_each_configuration_for_the_cpu_is_one_and_what_fails_is_named(place: Path) -> None:
    found = asked("list", place)
    assert [(each.name, each.module, each.tags) for each in found.found] == [
        (FORWARD, "pt.add_test", ("short",)),
        (BACKWARD, "pt.add_test", ("short",)),
    ]
    assert {each.name for each in found.broken} == {"pt.absent_test", "pt.add_test.Add(M0_devicecpu)"}
    assert "not_there" in next(each.why for each in found.broken if each.name == "pt.absent_test")


@pytest.mark.slow
def test_forward_calls_the_code_of_the_side_and_backward_only_its_gradient(place: Path) -> None:
    medians: dict[tuple[str, str], float] = {}
    for side, name in (("old", FORWARD), ("new", FORWARD), ("new", BACKWARD)):
        with BenchmarkProcess(
            "run", Member(TORCH, str(place / "operators"), name, "pt.add_test"), str(place / side)
        ) as process:
            ready = process.reply(WITHIN_S)
            assert ready.from_side
            values = []
            for _ in range(9):
                process.ask()
                values.append(process.reply(WITHIN_S).value or 0.0)
            medians[side, name] = median(values)
    assert medians["new", FORWARD] > 3 * medians["old", FORWARD]
    assert medians["new", BACKWARD] < medians["new", FORWARD]  # hot.solve is in the forward pass, which ran before


@pytest.mark.slow
def test_one_that_is_gone_says_so(place: Path) -> None:
    with pytest.raises(BenchmarkFailed):
        asked("run", place, "pt.add_test.add_M5_cpu", "pt.add_test")


@pytest.mark.parametrize("path", ["operators", "operators/pt", "operators/pt/add_test.py"])
def test_a_file_or_folder_below_their_home_is_a_suite(place: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    asked_of: list[Any] = []

    def listed(member: Member, *_: Any) -> Reply:
        asked_of.append(member)
        return Reply()

    monkeypatch.setattr("fairlap.suite.found_suites._listed", listed)
    with pytest.raises(Exception, match="no benchmark"):
        open_suite(place / path, FoundOptions(), lambda _: None)
    modules = {"operators": "", "operators/pt": "pt", "operators/pt/add_test.py": "pt.add_test"}
    assert asked_of == [Member(TORCH, str(place / "operators"), module=modules[path])]


def test_other_folders_are_not_their_home(place: Path) -> None:
    assert home_of(str(place / "operators" / "pt" / "add_test.py")) == str(place / "operators")
    assert home_of(str(place)) == ""


def elsewhere(tmp_path: Path) -> tuple[Path, Path]:
    """Write a checkout of PyTorch's benchmarks, and a file of operators outside of it."""
    checkout = tmp_path / "checkout"
    operators_folder(checkout / "benchmarks")
    (checkout / "benchmarks" / "operators").rename(checkout / "benchmarks" / "operator_benchmark")
    file_of_operators(tmp_path / "own" / "many_ops.py", tmp_path / "built")
    return checkout, tmp_path / "own" / "many_ops.py"


@pytest.mark.slow_but("many_ops.many_M8_cpu_bwdall")
@pytest.mark.parametrize("name", ["many_ops.many_M8_cpu", "many_ops.many_M8_cpu_bwdall"])
def test_a_process_builds_its_own_configuration_alone(tmp_path: Path, name: str) -> None:
    checkout, file = elsewhere(tmp_path)
    member = Member(TORCH, str(file), name, "many_ops", str(checkout / "benchmarks" / "operator_benchmark"))
    with BenchmarkProcess("run", member, "") as process:
        assert process.reply(WITHIN_S).kind == "time"
    assert (tmp_path / "built").read_text().split() == ["8"]


@pytest.mark.slow
def test_one_that_cannot_be_built_says_why(tmp_path: Path) -> None:
    checkout, file = elsewhere(tmp_path)
    home = str(checkout / "benchmarks" / "operator_benchmark")
    member = Member(TORCH, str(file), "many_ops.many_M1_cpu", "many_ops", home)
    with BenchmarkProcess("run", member, "") as process, pytest.raises(BenchmarkFailed, match="ValueError"):
        process.reply(WITHIN_S)


@pytest.mark.parametrize("found_by", ["the side", "PYTHONPATH", "a checkout around it"])
@pytest.mark.parametrize("is_folder", [False, True])
def test_files_elsewhere_find_pytorchs_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found_by: str, is_folder: bool
) -> None:
    checkout, file = elsewhere(tmp_path)
    home, options = checkout / "benchmarks" / "operator_benchmark", FoundOptions()
    if found_by == "PYTHONPATH":
        monkeypatch.setenv("PYTHONPATH", str(home))
    elif found_by == "the side":
        options = FoundOptions(side=checkout)
    else:
        (tmp_path / "own").rename(checkout / "own")
        file = checkout / "own" / file.name
    asked_of: list[Any] = []

    def listed(member: Member, *_: Any) -> Reply:
        asked_of.append(member)
        return Reply()

    monkeypatch.setattr("fairlap.suite.found_suites._listed", listed)
    with pytest.raises(InvalidRequest):
        open_suite(file.parent if is_folder else file, options, lambda _: None)
    suite, module = (str(file.parent), "") if is_folder else (str(file), "many_ops")
    assert asked_of == [Member(TORCH, suite, module=module, root=str(home))]


@pytest.mark.slow
def test_a_folder_of_files_elsewhere_is_listed_and_keeps_its_home(tmp_path: Path) -> None:
    checkout, file = elsewhere(tmp_path)
    home = str(checkout / "benchmarks" / "operator_benchmark")
    with BenchmarkProcess("list", Member(TORCH, str(file.parent), root=home), "") as process:
        found = process.reply(WITHIN_S)
    sizes = [f"many_ops.many_M{size}_cpu{of_pass}" for of_pass in ("", "_bwdall") for size in (8, 18, 28)]
    assert [each.name for each in found.found] == sizes
    assert {each.module for each in found.found} == {"many_ops"}
    assert found.root == home


def test_a_folder_around_their_home_is_a_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout, _ = elsewhere(tmp_path)
    asked_of: list[Any] = []

    def listed(member: Member, *_: Any) -> Reply:
        asked_of.append(member)
        return Reply()

    monkeypatch.setattr("fairlap.suite.found_suites._listed", listed)
    with pytest.raises(InvalidRequest):
        open_suite(checkout, FoundOptions(), lambda _: None)
    assert asked_of == [Member(TORCH, str(checkout / "benchmarks" / "operator_benchmark"))]


def test_files_elsewhere_without_pytorchs_folder_say_where_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    _, file = elsewhere(tmp_path)
    with pytest.raises(InvalidRequest) as refused:
        open_suite(file, FoundOptions(), lambda _: None)
    assert refused.value.code == "E_SUITE"
    assert "benchmark_core.py" in str(refused.value)
