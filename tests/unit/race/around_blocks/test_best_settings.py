"""The search for best settings finds what is really faster, on other data, once, and says when nothing is."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
import pytest
from fairlap.errors import InvalidRequest
from fairlap.frameworks.registry import framework_named
from fairlap.race.around_blocks import best_settings
from fairlap.race.around_blocks.best_settings import search_settings, with_best_settings
from fairlap.race.around_blocks.settings_search import SettingsSearch, SettingsTry
from fairlap.race.around_blocks.settings_space import Space
from fairlap.race.planning.plan import Measuring, Plan
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.planning.plan_file import load_plan, save_plan
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.progress import Messages, Progress, Silence
from fairlap.race.run import Run
from fairlap.render.report.page import page_of
from fairlap.render.text.terminal import text_of
from fairlap.request.names import Contestants, contestant_named
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import Work
from fairlap.results.results import results_of
from fairlap.scenarios.process_result import ProcessResult
from machine_marks import needs_proc
from runs_for_rows import a_process, crashed
from small_races import run_race

pytestmark = needs_proc


@pytest.fixture(autouse=True)
def short_races(example: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best_settings, "_MEASURING", Measuring(seconds=0.02))


def planned(contestants: str, *, threads: int = 1, budget_s: float = 60.0, blocks: int = 1) -> Plan:
    return draw_plan(
        Contestants(contestants),
        (Work("mlp", 2),),
        blocks=blocks,
        conditions="as-found",
        threads=threads,
        available_cores=tuple(sorted(os.sched_getaffinity(0)))[:threads],
        seed=1,
        measuring=Measuring(seconds=0.02),
        best_budget_s=budget_s,
    )


def tunable(monkeypatch: pytest.MonkeyPatch, **space: tuple[str, ...]) -> None:
    """Nothing else is in the space, whatever is installed on this machine."""
    monkeypatch.setattr(framework_named("example"), "tunable", space)
    monkeypatch.setattr(best_settings, "space_of", lambda *_: Space(space, {"numa": "not here"}))


def searched(plan: Plan) -> SettingsSearch:
    return search_settings(plan, plan.contestants[0])


def test_best_is_no_variant_and_keeps_what_the_user_has_set() -> None:
    name = contestant_named("torch==2.13.0:best:memory_format=channels_last")
    assert (name.best, name.variant, name.framework) == (True, "", "torch")
    assert contestant_named("./worker:best").best is False


def test_its_threads_are_those_found_and_no_option_of_the_framework() -> None:
    name = msgspec.structs.replace(contestant_named("torch:best"), options=(("threads", "1"), ("mode", "x")))
    assert (name.threads(4), name.framework_options) == (1, {"mode": "x"})
    plain = contestant_named("torch:threads=1")
    assert (plain.threads(4), plain.framework_options) == (4, {"threads": "1"})


def test_a_search_finds_that_leaving_out_a_brake_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default is slowed down; "none" takes the brake off, "more" brakes harder."""
    calls = _Ratios({"none": 0.5, "more": 2.0, "odd": 0.9}, monkeypatch)
    tunable(monkeypatch, brake=("none", "more"), other=("odd",))
    search = searched(planned("example:best"))
    assert search.found == {"brake": "none", "other": "odd"}
    assert search.ratio == pytest.approx(0.45)
    assert search.regret is not None
    assert (search.regret.at_most, search.regret.bounded, search.regret.unbounded) == (0.0, 2, 2)
    assert search.ended_by == "complete"
    assert search.left_out == {"numa": "not here"}
    assert search.data_seed not in planned("example:best").data_seeds
    assert calls.seeds == {search.data_seed}
    assert [(each.settings, each.round) for each in search.tries][:4] == [
        ({}, 1),
        ({"brake": "none"}, 1),
        ({"other": "odd"}, 1),
        ({"brake": "more"}, 1),
    ]
    assert {each.round for each in search.tries} == {1, 2, 3}


def test_one_candidate_may_take_half_of_the_time_that_is_left_and_in_the_last_round_all_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played = _Ratios({"none": 0.5}, monkeypatch)
    tunable(monkeypatch, brake=("none",))
    searched(planned("example:best", budget_s=90.0))
    first_s, last_s = played.prepare_s
    assert first_s <= 30.0  # of the 60 s that are not kept for the last round
    assert 80.0 < last_s <= 90.0
    assert [left_s <= most_s for left_s, most_s in zip(played.left_s, (60.0, 90.0), strict=True)] == [True, True]


def test_a_candidate_may_take_twice_as_long_to_get_ready_as_the_default_did(monkeypatch: pytest.MonkeyPatch) -> None:
    played = _Ratios({"a": 1.1, "b": 1.1}, monkeypatch, default_ready_s=20.0)
    tunable(monkeypatch, brake=("a", "b"), other=("a", "b"))
    searched(planned("example:best", budget_s=30.0))
    assert played.prepare_s == [pytest.approx(10.0, abs=0.5), 40.0]


def test_a_search_that_finds_nothing_better_keeps_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    _Ratios({"more": 2.0, "same": 0.995}, monkeypatch)
    tunable(monkeypatch, brake=("more", "same"))
    search = searched(planned("example:best"))
    assert (search.found, search.ratio, search.ended_by) == ({}, None, "complete")
    assert search.regret is not None
    assert (search.regret.at_most, search.regret.unbounded) == (None, 2)


def test_what_was_only_lucky_in_the_first_round_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    _Ratios({"lucky": 0.5}, monkeypatch, later={"lucky": 1.2})
    tunable(monkeypatch, brake=("lucky",))
    search = searched(planned("example:best"))
    assert search.regret is not None
    assert search.regret.at_most == 0
    assert (search.found, search.ended_by) == ({}, "complete")


def test_a_value_that_names_further_options_is_tried_with_them_and_never_with_another_value_of_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """1 thread alone helps, and so does the node with 2 threads; together they would ask for both numbers."""
    _Ratios({"1": 0.8, "0": 0.9, "2": 0.9, "eager": 1.0}, monkeypatch)
    tunable(monkeypatch, threads=("1",), numa=("0:threads=2",))
    search = searched(planned("example:best"))
    assert search.found == {"threads": "1"}
    assert {tuple(each.settings.items()) for each in search.tries if each.round == 1} == {
        (),
        (("threads", "1"),),
        (("numa", "0"), ("threads", "2")),
    }
    assert 2 not in {each.round for each in search.tries}


def test_what_does_not_run_alone_is_not_tried_with_more(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = _Ratios({"broken": 0.5, "fine": 0.9, "a": 1.1, "b": 1.1, "more": 0.4}, monkeypatch, crashes=("broken",))
    tunable(monkeypatch, brake=("broken", "broken:other=more"), other=("a",), third=("b",))
    search = searched(planned("example:best"))
    assert search.not_reached == [(("brake", "broken"), ("other", "more"))]
    assert [each.settings for each in search.tries if each.settings.get("other") == "more"] == []
    assert search.ended_by == "complete"
    assert calls.seeds


def test_a_search_without_time_takes_the_default_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    _Ratios({"none": 0.5}, monkeypatch)
    tunable(monkeypatch, brake=("none",))
    search = searched(planned("example:best", budget_s=1e-6))
    assert (search.found, search.ended_by, search.tries) == ({}, "budget", ())


class _Ratios:
    """Plays the small races: a candidate takes the product of the ratios of its values times the default."""

    def __init__(
        self,
        ratios: dict[str, float],
        monkeypatch: pytest.MonkeyPatch,
        later: dict[str, float] | None = None,
        *,
        broken_default: bool = False,
        crashes: tuple[str, ...] = (),
        default_ready_s: float = 0.0,
    ) -> None:
        self.seeds: set[int] = set()
        self.prepare_s: list[float] = []  # by race
        self.left_s: list[float] = []
        self._ratios, self._later = ratios, later or ratios
        played = self

        class Played:
            def __init__(self, plan: Plan, _progress: Progress, *, ends_by_s: float) -> None:
                self.plan = plan
                played.prepare_s.append(plan.limits.prepare_s)
                played.left_s.append(ends_by_s - time.monotonic())
                self.processes: list[ProcessResult] = []

            def run(self) -> None:
                found = played._later if len(self.plan.blocks) > 1 else played._ratios
                for block in self.plan.blocks:
                    played.seeds.add(block.data_seed)
                    for place in block.order:
                        name = self.plan.contestants[place]
                        ns = 1e6
                        for _, value in name.options:
                            ns *= found[value]
                        process = a_process(block.number, name.text, ns, self.plan.works[0])
                        process.timings["wall_ns"] = msgspec.structs.replace(process.headline, p50_ns=ns)
                        process.phases_s = {"import": default_ready_s} if not name.options else {}
                        if (broken_default and not name.options) or any(each in crashes for _, each in name.options):
                            crashed(process)
                        self.processes.append(process)

        monkeypatch.setattr(best_settings, "Race", Played)


def test_a_best_contestant_races_under_its_name_and_a_rerun_does_not_search_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With real processes: the only alternative is a variant that crashes."""
    tunable(monkeypatch, variant=("crash",))
    plan = with_best_settings(planned("example,example:best"))
    [search] = plan.searches
    assert (search.found, search.ended_by) == ({}, "complete")
    assert [each.why.partition("[")[2] for each in search.tries] == ["", "E_CRASH]"]
    save_plan(plan, tmp_path / "plan.json")
    again = load_plan(tmp_path / "plan.json")
    assert again == plan
    monkeypatch.setattr(best_settings, "search_settings", None)
    assert with_best_settings(again) == again
    race = run_race(again)
    run = Run(again, race.processes, {}, race.shares())
    assert run.searches == plan.searches
    results = results_of(run, "r")
    rows = {row.contestant: row for row in results.rows}
    assert {name: row.division for name, row in rows.items()} == {"example": "default", "example:best": "best"}
    assert all("W_MIXED_DIVISIONS" in {warning.code for warning in row.warnings} for row in rows.values())
    page, text = page_of(results), text_of(results)
    for shown in (page, text):
        assert "example:best: " in shown.replace("</strong>", "")
    assert "Settings tried for example:best" in page
    assert "best settings: default" in page
    assert rows["example:best"].found_settings == {}


def test_a_quiet_search_shows_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _Ratios({"none": 0.5}, monkeypatch)
    tunable(monkeypatch, brake=("none",))
    quiet = with_best_settings(planned("example:best"), Silence())
    assert [search.found for search in quiet.searches] == [{"brake": "none"}]
    assert capsys.readouterr().err == ""
    with_best_settings(planned("example:best"), Messages())
    assert capsys.readouterr().err.count("example:best") == 2


def test_a_default_that_does_not_run_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    _Ratios({"none": 0.5}, monkeypatch, broken_default=True)
    tunable(monkeypatch, brake=("none",))
    search = searched(planned("example:best"))
    assert (search.found, search.ended_by) == ({}, "default")
    assert {each.why[-9:] for each in search.tries if not each.settings} == {"[E_CRASH]"}


@pytest.mark.slow
def test_a_slow_candidate_ends_with_the_budget_and_is_recorded_as_not_finished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With real processes: the only alternative never gets ready. A busy machine needs the budget for the default."""
    tunable(monkeypatch, variant=("hang-prepare",))
    budget_s, slow = 2.0, list[SettingsTry]()
    while not slow:
        budget_s *= 2
        began_s = time.monotonic()
        search = searched(planned("example:best", budget_s=budget_s))
        assert time.monotonic() - began_s < budget_s + 120.0  # drawing the data and ending processes come on top
        assert (search.found, search.ended_by) == ({}, "budget")
        slow = [each for each in search.tries if each.settings]
    assert [(each.ratio, each.why[-10:]) for each in slow] == [(None, "[E_BUDGET]")]


@pytest.mark.parametrize(
    "name", ["torch:best:foo=bar", "torch:best:onednn=maybe", "torch:best:mode=max-autotune", "torch:best:threads=few"]
)
def test_an_option_that_the_framework_lacks_is_refused_before_the_search(name: str) -> None:
    plan = planned("torch")
    with pytest.raises(InvalidRequest) as refused:
        with_best_settings(msgspec.structs.replace(plan, contestants=(contestant_named(name),)))
    assert name in str(refused.value)
    with pytest.raises(InvalidRequest):
        plan_of(RaceRequest(models=("mlp",), contestants=Contestants(name)))


def test_more_threads_than_the_race_gives_are_refused_before_the_search() -> None:
    with pytest.raises(InvalidRequest):
        with_best_settings(planned("example:best:threads=2", threads=1))


def test_a_budget_for_settings_needs_a_best_contestant() -> None:
    request = RaceRequest(models=("mlp",), contestants=Contestants("torch"), best_budget=5.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest):
        plan_of(request)


def test_a_self_test_takes_no_contestant_whose_settings_are_still_to_be_found() -> None:
    from click.testing import CliRunner
    from fairlap.cli.commands.self_test import command

    found = CliRunner().invoke(command, ["mlp", "--on", "example:best"])
    assert isinstance(found.exception, InvalidRequest)
