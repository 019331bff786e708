"""The search for best settings finds what is really faster, on other data, once, and says when nothing is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec
import pytest
from example_installed import install_example
from fairlap.errors import InvalidRequest
from fairlap.frameworks.registry import framework_named
from fairlap.race.around_blocks import best_settings
from fairlap.race.around_blocks.best_settings import search_settings, space_of, with_best_settings
from fairlap.race.plan import Measuring, Plan, draw_plan, load_plan, save_plan
from fairlap.race.plan_from_request import plan_of
from fairlap.race.process_result import ProcessResult
from fairlap.race.race import Race
from fairlap.race.run import Run
from fairlap.race.settings_search import SettingsSearch
from fairlap.render.report.page import page_of
from fairlap.render.terminal import text_of
from fairlap.request.names import Contestants, contestant_named
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import Work
from fairlap.results.results import results_of
from runs_for_rows import a_process, crashed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are found and ended through /proc")


@pytest.fixture(autouse=True)
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_example(tmp_path / "installed", monkeypatch)
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
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
    monkeypatch.setattr(framework_named("example"), "tunable", space)


def searched(plan: Plan) -> SettingsSearch:
    return search_settings(plan, plan.contestants[0])


def test_best_is_no_variant_and_keeps_what_the_user_has_set() -> None:
    name = contestant_named("torch==2.13.0:best:memory_format=channels_last")
    assert (name.best, name.variant, name.framework) == (True, "", "torch")
    space = space_of(name, 4, "cpu")
    assert space == {"variant": ("compile",), "threads": ("2", "1")}
    assert space_of(contestant_named("onnxruntime:best"), 1, "cuda:0").keys() == {"variant", "optimization"}
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
    assert search.ended_by == "complete"
    assert search.data_seed not in planned("example:best").data_seeds
    assert calls.seeds == {search.data_seed}
    assert [(each.settings, each.round) for each in search.tries][:4] == [
        ({}, 1),
        ({"brake": "none"}, 1),
        ({"brake": "more"}, 1),
        ({"other": "odd"}, 1),
    ]
    assert {each.round for each in search.tries} == {1, 2, 3}


def test_a_search_that_finds_nothing_better_keeps_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    _Ratios({"more": 2.0, "same": 0.995}, monkeypatch)
    tunable(monkeypatch, brake=("more", "same"))
    search = searched(planned("example:best"))
    assert (search.found, search.ratio, search.ended_by) == ({}, None, "complete")


def test_what_was_only_lucky_in_the_first_round_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    _Ratios({"lucky": 0.5}, monkeypatch, later={"lucky": 1.2})
    tunable(monkeypatch, brake=("lucky",))
    search = searched(planned("example:best"))
    assert (search.found, search.ended_by) == ({}, "complete")


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
    ) -> None:
        self.seeds: set[int] = set()
        self._ratios, self._later = ratios, later or ratios
        played = self

        class Played:
            def __init__(self, plan: Plan) -> None:
                self.plan = plan
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
                        if broken_default and not name.options:
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
    race = Race(again)
    race.run()
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


def test_a_default_that_does_not_run_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    _Ratios({"none": 0.5}, monkeypatch, broken_default=True)
    tunable(monkeypatch, brake=("none",))
    search = searched(planned("example:best"))
    assert (search.found, search.ended_by) == ({}, "default")
    assert {each.why[-9:] for each in search.tries if not each.settings} == {"[E_CRASH]"}


def test_a_budget_for_settings_needs_a_best_contestant() -> None:
    request = RaceRequest(models=("mlp",), contestants=Contestants("torch"), best_budget=5.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest):
        plan_of(request)


def test_a_self_test_takes_no_contestant_whose_settings_are_still_to_be_found() -> None:
    from click.testing import CliRunner
    from fairlap.cli.commands.self_test import command

    found = CliRunner().invoke(command, ["mlp", "--on", "example:best"])
    assert isinstance(found.exception, InvalidRequest)
