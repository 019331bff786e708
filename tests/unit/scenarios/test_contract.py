"""A scenario of an installed package decides what its works are ranked by, in every output."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
from fairlap import verdict
from fairlap.errors import InvalidRequest
from fairlap.plugins import SCENARIOS
from fairlap.render.files.markdown_file import encode
from fairlap.render.text.terminal import text_of
from fairlap.request.work import Work
from fairlap.results.results import results_of
from fairlap.scenarios import contract
from fairlap.scenarios.contract import Asked, Judged, Processes, Ruling, Scenario
from fairlap.scenarios.process_result import Timing
from fairlap.store.figures import recorded_figures
from fairlap.store.store import open_store
from installed_package import write_package
from runs_in_store import keep_whole
from saved_runs import WORK, saved_run

CALLS_NS = {"torch": 1e6, "jax": 2e6}
SLOWEST_NS = {"torch": 9e6, "jax": 3e6}
BY = "99th percentile of a call"


class SlowestCalls(Scenario):
    """Of one model, whose users wait for the slowest calls."""

    def is_asked(self, asked: Asked, work: Work) -> bool:
        return work.model == WORK.model

    def judge(self, asked: Asked, work: Work, processes: Processes, ranked: Collection[str]) -> Ruling:
        return Ruling(Judged(BY, verdict.LATENCY, lambda process: process.timings["wall_ns"].p99_ns))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write what pip leaves of a package with this entry point."""
    info = write_package(tmp_path, "slowest-calls", {SCENARIOS: {"slowest": f"{__name__}:SlowestCalls"}})
    monkeypatch.syspath_prepend(str(tmp_path))
    contract.scenarios.cache_clear()
    yield info
    contract.scenarios.cache_clear()


def test_a_scenario_of_an_installed_package_decides_the_ranking_of_its_works(installed: Path, tmp_path: Path) -> None:
    run = saved_run(CALLS_NS)
    for each in run.processes:
        median_ns, slowest_ns = CALLS_NS[each.contestant], SLOWEST_NS[each.contestant] * (1 + 0.002 * (each.block % 4))
        each.timings = {"wall_ns": Timing(median_ns, median_ns, slowest_ns, 100, 1, 0, "flat", "tsc", 10.0)}
    results = results_of(run, "r")
    assert [(row.contestant, row.judged_by) for row in results.rows] == [("jax", BY), ("torch", BY)]
    assert [round(row.judged.value / 1e6) for row in results.rows if row.judged is not None] == [3, 9]
    assert results.rows[1].verdict == "slower"
    assert BY in encode(results.rows).decode()
    assert text_of(results).index("jax") < text_of(results).index("torch")
    with open_store(tmp_path / "runs.sqlite") as store:
        assert {row.judged_by for row in store.rows(keep_whole(store, run))} == {BY}
        assert {each.quantity for each in store.ask(recorded_figures, WORK.model, "")} == {BY}


def test_other_works_keep_their_own_scenario(installed: Path) -> None:
    plan = saved_run(CALLS_NS).plan
    assert isinstance(plan.scenario(WORK), SlowestCalls)
    assert not isinstance(plan.scenario(Work("gemm", 1)), SlowestCalls)


def test_a_scenario_that_cannot_be_loaded_is_named(installed: Path) -> None:
    (installed / "entry_points.txt").write_text(f"[{SCENARIOS}]\nslowest = {__name__}:BY\n")
    with pytest.raises(InvalidRequest, match="BY is not a Scenario"):
        results_of(saved_run(CALLS_NS), "r")
