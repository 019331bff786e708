"""Core rooms ask what a scenario answers, and never which one a work is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

import fairlap
import pytest
from fairlap.errors import InvalidRequest
from fairlap.plugins import class_at
from fairlap.race.planning.plan_reach import reach_of
from fairlap.race.scenario_side import RaceSide, data_seeds_of, race_side_of, sides_asked
from fairlap.render.plan_command import command_of
from fairlap.render.scenario_side import NoCommand, RenderSide, Words, render_side_of
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import Work
from fairlap.results.column_definitions.about import ScenarioColumns
from fairlap.scenarios.calls.calls_scenario import Calls
from fairlap.scenarios.contract import Asked, built_in_scenarios, scenarios
from small_races import small_plan

_ROOT = Path(fairlap.__file__).parent
_ASKS = re.compile(r"(work|plan)\.load\b|\.to_score\b|\bto_score is|\.mode ==")
_MAY_ASK = {
    "race/self_test.py",  # passes the field on
}
_IN_A_FOLDER = re.compile(r"fairlap\.scenarios\.(\w+)\.\w")
_OF_ALL = {"calls", "ranks", "untimed"}  # every contestant makes calls, may be raced at a scale, and may be profiled
_MAY_NAME_ONE = {
    "__init__.py",  # the names of the Python interface
    "comparing.py",  # Python's own way to compare callables
    "magics.py",  # the same in a notebook
    "render/files/mllog_file.py",  # one format, one file; its lines hold the name of this file
    "stability/trials.py",  # a whole program around races of digits
}
_MAY_NAME_A_COLUMN = {
    "comparing.py",  # an example
    "render/files/markdown_table.py",  # the rate at which LoadGen ran
    "request/fields/traffic.py",  # a quantity of its own by the same name
    "results/decision/requirements.py",  # short names
    "results/quantities/row_quantities.py",  # short names of quantities
}


def _files_outside(*rooms: str) -> dict[str, str]:
    names = {file: file.relative_to(_ROOT) for file in _ROOT.rglob("*.py")}
    return {str(name): file.read_text() for file, name in names.items() if name.parts[0] not in rooms}


def test_no_core_room_asks_which_scenario_or_mode_a_work_is() -> None:
    asking = {name for name, text in _files_outside("scenarios", "bench_models").items() if _ASKS.search(text)}
    assert asking <= _MAY_ASK


def test_no_core_room_imports_from_the_folder_of_a_scenario() -> None:
    outside = _files_outside("scenarios", "bench_models", "cli")  # a command may be that of a scenario
    naming = {name for name, text in outside.items() if {*_IN_A_FOLDER.findall(text)} - _OF_ALL}
    assert naming == _MAY_NAME_ONE


def test_no_core_room_names_a_column_of_a_scenario() -> None:
    defined = [class_at(each.columns, ScenarioColumns, "columns") for each in built_in_scenarios() if each.columns]
    names = [name for each in defined for name in each.__struct_fields__ if "_" in name]  # others are words of the code
    assert {"cost_to_score", "largest_rate_per_s", "mix_ready_s", "file_model_ns", "load_clients"} <= {*names}
    named = re.compile(rf"\b({'|'.join(names)})\b")
    outside = _files_outside("scenarios", "bench_models")
    assert {name for name, text in outside.items() if named.search(text)} == _MAY_NAME_A_COLUMN


class _Tides(Calls):
    """A scenario that nothing in the core has heard of."""

    command = "tides"
    data_seeds = (7, 8)
    budgets_s = (1000.0, 2000.0)
    race_side = f"{__name__}:_TidesAsked"
    render_side = f"{__name__}:_TidesShown"

    def is_asked(self, asked: Asked, work: Work) -> bool:
        return work.model == "mlp"

    def reaches(self, work: Work) -> Iterable[str]:
        return ["the sea"]

    def threads_note(self, work: Work) -> str:
        return " at sea"


class _TidesAsked(RaceSide):
    title = "--tides"
    batch = 3

    def is_asked(self, request: RaceRequest) -> bool:
        return request.models == ("mlp",)


class _TidesShown(RenderSide):
    lacks: ClassVar = frozenset({"--mode", "--device"})

    def words(self, plan: object) -> Words:
        return ["--tides", "high"]


@pytest.fixture
def tides(monkeypatch: pytest.MonkeyPatch) -> _Tides:
    found = _Tides()
    all_of_them = (found, *scenarios())
    for room in ("scenarios.contract", "race.scenario_side", "render.scenario_side", "race.planning.plan_reach"):
        monkeypatch.setattr(f"fairlap.{room}.scenarios", lambda: all_of_them)
    return found


@pytest.mark.usefixtures("tides")
def test_a_plan_gets_its_command_its_budgets_its_seeds_and_its_notes_from_the_scenario() -> None:
    plan = small_plan("torch,jax", Work("mlp", 1))
    assert plan.command == "tides"
    assert plan.budgets_s == (1000.0, 2000.0)
    assert plan.usual_data_seeds == (7, 8)
    assert plan.threads_text(plan.works[0]).endswith("thread at sea")
    assert "the sea" in reach_of(plan)


def test_a_request_gets_its_seeds_from_the_scenario_that_it_asks_for(tides: _Tides) -> None:
    asked = RaceRequest(models=("mlp",), contestants=Contestants("torch"))
    assert race_side_of(tides) in sides_asked(asked)
    assert data_seeds_of(asked) == (7, 8)
    assert data_seeds_of(RaceRequest(models=("triad",), contestants=Contestants("torch"))) == (0, 1, 2)


def test_a_side_that_is_not_one_is_refused(monkeypatch: pytest.MonkeyPatch, tides: _Tides) -> None:
    monkeypatch.setattr(_Tides, "render_side", f"{__name__}:_TidesAsked")
    with pytest.raises(InvalidRequest):
        render_side_of(tides)
    monkeypatch.setattr(_TidesShown, "words", _no_words)
    monkeypatch.setattr(_Tides, "render_side", f"{__name__}:_TidesShown")
    assert command_of(small_plan("torch,jax", Work("mlp", 1))) == ""


def _no_words(_side: RenderSide, _plan: object) -> Words:
    raise NoCommand
