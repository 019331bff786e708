"""A run that is raced again: which of its verdicts hold, which flip, and which are undecided."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import invoke, refusal
from fairlap.history.recheck import recheck
from fairlap.race.run import Run
from fairlap.results.results import results_of
from fairlap.store.runs.run_file import save_run
from saved_runs import MACHINE, saved_run

THEN = {"jax": 1e6, "torch": 1.2e6}


@pytest.mark.parametrize(
    ("then", "now", "outcomes", "status"),
    [
        (THEN, {"jax": 3e6, "torch": 3.7e6}, ["holds"], 0),  # a machine that is three times as slow
        (THEN, {"jax": 1.2e6, "torch": 1e6}, ["flips"], 1),
        (THEN, {"jax": 1e6, "torch": 1e6}, ["flips"], 1),  # slower by 20 %, and equivalent
        ({"jax": 1e6, "torch": 1e6}, {"jax": 1e6, "torch": 1e6}, ["holds"], 0),
        ({**THEN, "onnxruntime": 2e6}, {"jax": 1e6, "torch": 1.2e6, "onnxruntime": 0.5e6}, ["holds", "flips"], 1),
    ],
)
def test_verdicts_are_compared_by_what_they_claim(
    then: dict[str, float], now: dict[str, float], outcomes: list[str], status: int
) -> None:
    found = recheck(results_of(saved_run(then)), results_of(saved_run(now, seed=1)), [])
    assert [each.outcome for each in found.verdicts] == outcomes
    assert found.exit_status == status
    assert (found.holds, found.flips) == (outcomes.count("holds"), outcomes.count("flips"))
    assert [each.why == "" for each in found.verdicts] == [each == "holds" for each in outcomes]


@pytest.mark.parametrize("noisy", ["then", "now"])
def test_a_verdict_that_is_inconclusive_in_either_run_is_undecided(noisy: str) -> None:
    clear, unclear = saved_run(THEN), saved_run({"jax": 1e6, "torch": 1e6}, seed=3, spread=0.1)
    then, now = (unclear, clear) if noisy == "then" else (clear, unclear)
    found = recheck(results_of(then), results_of(now), [])
    [only] = found.verdicts
    assert only.outcome == "undecided"
    assert (only.before == "inconclusive", only.after == "inconclusive") == (noisy == "then", noisy == "now")
    assert found.exit_status == 3


def test_a_contestant_that_fails_here_leaves_its_verdict_undecided_and_says_why() -> None:
    now = saved_run(THEN, seed=1)
    for process in now.processes:
        if process.contestant == "torch":
            process.outcome, process.code, process.message = "failed", "E_EXCEPTION", "no such operator"
    found = recheck(results_of(saved_run(THEN)), results_of(now), [])
    [only] = found.verdicts
    assert (only.outcome, only.after, only.ratio_after, found.exit_status) == ("undecided", None, None, 3)
    assert "E_EXCEPTION" in only.why


def test_settings_that_a_contestant_has_otherwise_are_listed_with_what_was_known_before() -> None:
    now = saved_run(THEN, seed=1)
    for process in now.processes:
        process.in_force = {**process.in_force, "threads": "4"}
    found = recheck(results_of(saved_run(THEN)), results_of(now), ["kernel 6.1 -> 6.8"])
    assert found.differences == ("kernel 6.1 -> 6.8", "jax: threads 1 -> 4", "torch: threads 1 -> 4")


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """Answer each race with the first of these runs, on a machine with two cores."""
    runs: list[Run] = []

    def run_race(plan: object, output: object) -> int:
        run = runs.pop(0)
        run.plan = plan  # type: ignore[assignment]
        output.answer(results_of(run), "again")  # type: ignore[attr-defined]
        return 0

    monkeypatch.setattr("fairlap.cli.races.run_race.run_race", run_race)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {4, 5})
    return runs


def test_the_command_moves_a_plan_to_the_cores_here_and_ends_with_the_status(again: list[Run], tmp_path: Path) -> None:
    then = saved_run(THEN, machine={**MACHINE, "cpu model": "Imaginary 9000"})
    save_run(tmp_path / "then.json", then)
    again += [saved_run({"jax": 1.2e6, "torch": 1e6}, seed=1), saved_run(THEN, seed=1)]
    ran = again[0]
    flipped = invoke("rerun", tmp_path / "then.json", "--recheck", "--json", "-q", "--no-store")
    assert flipped.exit_code == 1, flipped.output
    found = json.loads(flipped.stdout)
    assert (found["schema"], found["run"], found["exit_status"], found["flips"]) == (
        "fairlap.recheck/1", "again", 1, 1,
    )  # fmt: skip
    assert [each for each in found["differences"] if each.startswith("cpu model Imaginary 9000 -> ")]
    assert {core for block in ran.plan.blocks for core in block.cores} <= {4, 5}
    held = invoke("rerun", tmp_path / "then.json", "--recheck", "-q", "--no-store")
    assert held.exit_code == 0, held.output
    assert "holds" in held.stdout
    assert refusal("rerun", tmp_path / "then.json", "-q", "--no-store").code == "E_REQUEST"
