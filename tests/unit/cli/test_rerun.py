"""A rerun has the budget of its run, or as many blocks as are asked for; a run that had ended needs more to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import fairlap, output, refusal
from fairlap.race.run import Run
from fairlap.race.stopping import DECIDED, is_out_of_time
from fairlap.store.store import open_store

pytestmark = pytest.mark.slow

RACE = ["compare", "callable", "--on", "python:call=os.getpid,python:call=os.getcwd", "--conditions", "as-found"]
RACE += ["--threads", "1", "--seconds", "0.02", "--quiet"]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    return tmp_path / "runs.sqlite"


def newest(store: Path) -> tuple[str, Run]:
    with open_store(store, reading=True) as opened:
        run_id = opened.id_of("last")
        return run_id, opened.load(run_id)


def test_a_rerun_has_the_budget_of_its_run_and_another_one_or_more_blocks_where_they_are_given(store: Path) -> None:
    assert (
        fairlap(*RACE, "--budget", "1s", "--max-slowdown", "1%", "--baseline", "python:call=os.getpid").returncode == 0
    )
    first, then = newest(store)
    rerun = fairlap("rerun", "last", "--quiet")
    assert rerun.returncode == 0
    assert f"fairlap diff {first} last" in rerun.stderr
    again = newest(store)[1]
    assert then.plan.budget_s == again.plan.budget_s == 1.0
    assert again.wall_s["whole"] < 20.0
    assert fairlap("rerun", first, "--budget", "0.5s", "--quiet").returncode == 0
    assert newest(store)[1].plan.budget_s == 0.5
    assert fairlap("rerun", first, "--blocks", "3", "--quiet").returncode == 0
    more = newest(store)[1]
    assert more.plan.budget_s is None
    assert {process.block for process in more.processes} == {0, 1, 2}
    assert more.plan.seed == then.plan.seed
    assert more.plan.blocks[0].order == then.plan.blocks[0].order


def test_a_run_that_had_ended_is_continued_only_with_a_budget_and_says_that_it_was(store: Path) -> None:
    assert fairlap(*RACE, "--budget", "0.1s").returncode == 0
    run_id, then = newest(store)
    assert is_out_of_time(then.ended_early), then.ended_early
    refused = fairlap("compare", "--resume", "last")
    assert refused.returncode == 2
    assert "[E_RESUME]" in refused.stderr
    assert f"fairlap rerun {run_id}" in refused.stderr
    assert newest(store)[1] == then
    assert fairlap("compare", "--resume", "last", "--budget", "30s", "--quiet").returncode == 0
    decided = newest(store)[1]
    blocks = len({process.block for process in then.processes})
    assert decided.ended_early.startswith(DECIDED), decided.ended_early
    assert decided.continued_after == (blocks,)
    assert len(decided.processes) > len(then.processes)
    assert "W_CONTINUED" in output("show", "last", "--json")
    assert refusal("compare", "--resume", "last").code == "E_RESUME"
    assert newest(store)[1] == decided
    assert fairlap("compare", "--resume", "last", "--budget", "8s", "--quiet").returncode == 0
    longer = newest(store)[1]
    assert longer.processes[: len(decided.processes)] == decided.processes
    assert len(longer.processes) > len(decided.processes) + 2
    assert longer.continued_after == (blocks, len({process.block for process in decided.processes}))


def test_a_run_of_all_its_blocks_is_not_resumed_and_another_number_of_blocks_is_for_a_rerun(store: Path) -> None:
    assert fairlap(*RACE, "--blocks", "2").returncode == 0
    run_id, then = newest(store)
    for options in ([], ["--budget", "30s"]):
        assert refusal("compare", "--resume", "last", *options).code == "E_RESUME"
    error = refusal("compare", "--resume", "last", "--blocks", "4")
    assert error.code == "E_REQUEST"
    assert "fairlap rerun" in str(error)
    assert newest(store) == (run_id, then)
