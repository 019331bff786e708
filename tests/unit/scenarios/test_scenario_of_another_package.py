"""A package adds a scenario with steps of its own: the first call after a pause.

It ranks contestants otherwise than the median call does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from fairlap.cli.commands import compare
from fairlap.cli.options.added_options import added_options
from fairlap.errors import InvalidRequest
from fairlap.race.planning.plan import Measuring
from fairlap.race.planning.plan_from_request import plan_of as plan_of_request
from fairlap.race.run import Run
from fairlap.render.charts.charts_of_run import charts_of
from fairlap.render.charts.parts.chart_tables import chart_tables
from fairlap.render.files.markdown_file import encode
from fairlap.render.plan_command import command_of
from fairlap.render.report.page import page_of
from fairlap.render.text.terminal import text_of
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest, read_request
from fairlap.results.flat_row import flat, row_of_cells
from fairlap.results.results import Results, results_of
from fairlap.scenarios import contract
from machine_marks import needs_proc
from small_races import plan_of, run_race

pytestmark = needs_proc


@pytest.fixture(autouse=True)
def scenarios(example: None) -> Iterator[None]:
    contract.scenarios.cache_clear()
    yield
    contract.scenarios.cache_clear()


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the command is where the package is installed when it starts."""
    monkeypatch.setattr(compare.command, "params", list(compare.command.params))
    added_options(compare.command)


def raced(contestants: str, settings: Mapping[str, str], *, seconds: float = 0.04) -> Results:
    measuring = Measuring(seconds=seconds, rounds=4)
    plan = msgspec.structs.replace(plan_of(contestants), measuring=measuring, scenario_settings=settings)
    race = run_race(plan)
    assert {process.outcome for process in race.processes} == {"finished"}
    return results_of(Run(plan, race.processes, {}, {}, "2026-01-01T00:00:00+00:00"), "r")


def test_it_asks_ranks_and_is_shown_without_a_change_to_fairlap() -> None:
    turns_of_many_calls_s, tries = 0.4, list[tuple[float, float]]()
    while True:
        results = raced("example,example:slow,example:cold", {"pause": "50ms"}, seconds=turns_of_many_calls_s)
        by_name = {row.contestant: row for row in results.rows}
        assert {row.judged_by for row in results.rows} == {"first call after 0.05 s of pause"}
        judged = {name: row.judged.value for name, row in by_name.items() if row.judged is not None}
        assert [row.contestant for row in results.rows] == sorted(judged, key=judged.__getitem__)
        cold = by_name["example:cold"]
        assert cold.judged is not None
        assert cold.latency_p50_ns is not None
        added_ns = cold.scenario_figures["added_by_the_pause_ns"].value
        tries.append((cold.judged.value, cold.latency_p50_ns.value))
        # It sleeps 80 ms after a pause, and else 8 ms, unless other programs cause pauses in its turns.
        if cold.judged.value > 1.5 * cold.latency_p50_ns.value and max(judged.values()) == cold.judged.value:
            break
        assert len(tries) < 4, tries
    assert 20e6 < added_ns < cold.judged.value
    assert row_of_cells(flat(cold)) == cold
    assert "first call after 0.05 s of pause" in encode(results.rows).decode()
    assert "first call after 0.05 s of pause" in page_of(results)
    for shown in (encode(results.rows).decode(), text_of(results), page_of(results)):
        assert re.search(r"added by the pause [\d.,]+ \wss?", shown)
    tables = chart_tables(results)
    assert len(tables["scenario pauses"]) == 3 * 3  # contestants, pauses
    [chart] = [each for each in charts_of(results, tables) if each.key == "scenario-pauses"]
    assert not chart.absent
    assert "First calls" in page_of(results)


@pytest.mark.slow
def test_without_its_setting_calls_are_ranked() -> None:
    results = raced("example,example:slow", {})
    assert {row.judged_by for row in results.rows} == {"median time of a call"}
    assert {tuple(row.scenario_figures) for row in results.rows} == {()}
    assert "scenario pauses" not in chart_tables(results)


@pytest.mark.usefixtures("command")
def test_its_option_is_in_the_help_and_reaches_the_plan(tmp_path: Path) -> None:
    runner = CliRunner()
    assert "--pause DURATION" in runner.invoke(compare.command, ["--help"]).output
    request = tmp_path / "race.toml"
    request.write_text('models = ["mlp"]\ncontestants = ["example"]\n[scenario_settings]\npause = "1s"\n')
    assert read_request(request).scenario_settings == {"pause": "1s"}
    for first in (["mlp", "--on", "example"], [str(request)]):
        for more, pause in (([], "1s"), (["--pause", "90ms"], "90ms")):
            done = runner.invoke(compare.command, [*first, *more, "--blocks", "1", "--dry-run", "--json"])
            assert done.exit_code == 0, done.output
            expected = {} if first[0] == "mlp" and not more else {"pause": pause}
            assert json.loads(done.output)["scenario_settings"] == expected


def test_its_settings_are_part_of_the_command_that_draws_the_plan_again() -> None:
    request = RaceRequest(models=("mlp",), contestants=Contestants("example"), scenario_settings={"pause": "2s"})
    assert "--pause 2s" in command_of(plan_of_request(request))


@pytest.mark.parametrize("settings", [{"pause": "soon"}, {"rest": "2s"}])
def test_a_setting_that_is_unknown_or_cannot_be_read_is_refused(settings: dict[str, str]) -> None:
    request = RaceRequest(models=("mlp",), contestants=Contestants("example"), scenario_settings=settings)
    with pytest.raises(InvalidRequest) as raised:
        plan_of_request(request)
    assert raised.value.code == "E_SCENARIO_SETTING"


def test_an_option_that_the_command_has_already_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from fairlap.scenarios.added import Setting

    monkeypatch.setattr(contract, "settings_of_scenarios", lambda: (Setting("batch", "Another batch.", int),))
    with pytest.raises(InvalidRequest, match="--batch"):
        added_options(compare.command)
