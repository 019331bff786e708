"""PyTorch's operator benchmarks race by the names and configurations that they register.

Beside PyTorch's own folder (its files for addition), all 219 names were those that its ``--list_tests`` prints.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import pytest
from benchmark_suites import project
from fairlap.frameworks.suites.child_process import BenchmarkFailed, BenchmarkProcess, Member, Reply
from fairlap.frameworks.suites.tools import TORCH
from fairlap.frameworks.suites.torch_operators import home_of
from fairlap.suite.found_suites import FoundOptions, open_suite
from machine_marks import needs_package
from operator_benchmarks import operators_folder

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


def test_each_configuration_for_the_cpu_is_one_and_what_fails_is_named(place: Path) -> None:
    found = asked("list", place)
    assert [(each.name, each.module, each.tags) for each in found.found] == [
        (FORWARD, "pt.add_test", ("short",)),
        (BACKWARD, "pt.add_test", ("short",)),
    ]
    assert {each.name for each in found.broken} == {"pt.absent_test", "pt.add_test.Add(M0_devicecpu)"}
    assert "not_there" in next(each.why for each in found.broken if each.name == "pt.absent_test")


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
