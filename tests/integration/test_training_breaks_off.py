"""Training that diverges, dies, runs out of its budget or is interrupted: what was learnt is kept, and resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import fairlap
from fairlap.meters import disturbances
from fairlap.models.registry import find
from fairlap.race.planning.plan import Measuring, Plan
from fairlap.race.run import Run
from fairlap.race.stopping import Ending
from fairlap.render.text.terminal import text_of
from fairlap.request.work import Work
from fairlap.results.results import results_of
from fairlap.scenarios.learning.race.checkpoints import Checkpoints
from fairlap.scenarios.learning.race.learning_data import data_to_learn
from fairlap.scenarios.process_result import ProcessResult
from machine_marks import needs_package, needs_proc
from numpy_trainer import install_numpy_trainer
from processes_seen import wait_until
from small_races import run_race, small_plan

pytestmark = [needs_proc, pytest.mark.timeout(600), needs_package("sklearn")]

EPOCH = 1438 // 64


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    install_numpy_trainer(tmp_path / "installed", monkeypatch)


def planned(contestants: str, epochs: int, *, count_evaluation: bool = False) -> Plan:
    model = find("digits")
    data, _ = data_to_learn(model, "", 1.0, lambda _: None)
    return small_plan(
        contestants,
        Work("digits", 64, "train", training=model.spec.training, train_on=data),
        available_cores=tuple(sorted(os.sched_getaffinity(0))),
        measuring=Measuring(seconds=0.05, rounds=2),
        to_score=0.999,
        most_epochs=epochs,
        count_evaluation=count_evaluation,
    )


def epochs_of(process: ProcessResult) -> int:
    return 0 if process.learning is None else len(process.learning.evaluations)


def test_one_that_diverges_and_one_that_dies_keep_their_curves_and_the_others_train_on(tmp_path: Path) -> None:
    plan = planned("numpy-trainer,numpy-trainer:diverges,numpy-trainer:killed", epochs=2)
    race = run_race(plan, kept={Checkpoints: Checkpoints(tmp_path / "checkpoints")})
    found = {process.contestant: process for process in race.processes}
    diverged, killed = found["numpy-trainer:diverges"], found["numpy-trainer:killed"]
    assert (diverged.outcome, diverged.code) == ("disqualified", "E_TRAINING")
    assert "after epoch 2" in diverged.message
    assert killed.outcome == "crash"
    assert "in epoch 2" in killed.message
    assert [epochs_of(found[name]) for name in sorted(found)] == [2, 1, 1]
    assert found["numpy-trainer"].outcome == "finished"
    assert len(list((tmp_path / "checkpoints").iterdir())) == 3
    json.dumps([row.best_score for row in results_of(Run(plan, race.processes, {}, {}), "r").rows], allow_nan=False)


def test_a_budget_that_is_spent_ends_training_after_the_epoch(tmp_path: Path) -> None:
    plan = planned("numpy-trainer", epochs=9)
    race = run_race(plan, ending=Ending(plan, budget_s=0.1))
    [process] = race.processes
    assert (process.outcome, epochs_of(process)) == ("finished", 1)
    assert process.learning is not None
    assert process.machine_after_turns[disturbances.MEASURED] >= process.learning.trained_s > 0
    assert "W_BUDGET_IN_TRAINING" in {notice.code for notice in process.warnings}
    results = results_of(Run(plan, race.processes, {}, {}), "r")
    assert "[W_BUDGET_IN_TRAINING]" in text_of(results)
    [row] = results.rows
    assert (row.time_to_score_s, row.reached_share) == (None, 0.0)
    assert row.best_score is not None
    assert row.best_score > 0


@pytest.mark.slow
def test_evaluation_counts_where_that_is_asked_for_and_is_proven() -> None:
    plan = planned("numpy-trainer,numpy-trainer:skips,numpy-trainer:silent", epochs=2, count_evaluation=True)
    race = run_race(plan)
    found = {process.contestant: process for process in race.processes}
    honest, skips, silent = (found[f"numpy-trainer{variant}"] for variant in ("", ":skips", ":silent"))
    assert honest.outcome == "finished"
    assert honest.learning is not None
    first, second = honest.learning.evaluations
    assert 0 < first.answered_s < second.answered_s < second.trained_s
    answered = [error for error in honest.errors if error.when.startswith("held-out items")]
    assert len(answered) == 2
    assert all(error.right and error.relative is not None and error.relative < 1e-4 for error in answered)
    assert (skips.outcome, skips.code, epochs_of(skips)) == ("disqualified", "E_OUTPUT", 1)
    assert "held-out items, epoch 1" in skips.message
    assert (silent.outcome, silent.code, epochs_of(silent)) == ("unsupported", "E_UNSUPPORTED", 0)


RACE = ("--on", "numpy-trainer", "--mode", "train", "--batch", 64, "--to-score", "99.9%", "--blocks", 1)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_race_that_was_ended_in_an_epoch_trains_on_when_it_is_resumed(
    how: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "runs.sqlite"
    monkeypatch.setenv("FAIRLAP_STORE", str(store))
    options = [*map(str, RACE), "--epochs", "3", "--seconds", "0.05s", "--threads", "1", "--quiet"]
    running = subprocess.Popen([sys.executable, "-m", "fairlap", "compare", "digits", *options])
    checkpoints = "runs.sqlite.*.checkpoints/*.safetensors"
    written = wait_until(lambda: list(tmp_path.glob(checkpoints)), 300, running=running)
    running.send_signal(how)
    running.wait(timeout=60)
    assert running.returncode == (130 if how == signal.SIGINT else -signal.SIGKILL)
    assert written[0].exists()
    resumed = fairlap("compare", "--resume", "last", "--json", "--keep-weights", tmp_path / "learnt")
    assert resumed.returncode == 1, resumed.stderr  # nobody reaches that score
    [process] = json.loads(resumed.stdout)["processes"]
    assert [each["steps"] for each in process["learning"]["evaluations"]] == [EPOCH * n for n in (1, 2, 3)]
    assert "W_CHECKPOINT" in {notice["code"] for notice in process["warnings"]}
    assert not written[0].parent.exists()
    [learnt] = (tmp_path / "learnt").iterdir()
    if how == signal.SIGINT:
        _require_a_better_start(learnt, process["learning"]["evaluations"][0]["score"])


def _require_a_better_start(learnt: Path, first_score: float) -> None:
    """Require that a race from the learnt weights begins where the other had ended."""
    options = ("--seconds", "0.05s", "--threads", 1, "--quiet", "--json", "--no-store", "--start-from", learnt)
    done = fairlap("compare", "digits", *RACE, *options, "--epochs", 1)
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    [process], [work] = document["processes"], document["plan"]["works"]
    assert process["learning"]["evaluations"][0]["score"] > first_score
    assert work["start"]["path"] == str(learnt)
    assert f"sha256:{work['start']['sha256'][:12]}" in document["work_results"][0]["work"]


def test_a_run_that_is_removed_takes_its_checkpoints_along(tmp_path: Path) -> None:
    from fairlap.store.recording import begin_recording
    from fairlap.store.store import open_store

    with open_store(tmp_path / "runs.sqlite") as store:
        recording = begin_recording(store, planned("numpy-trainer", 1), {}, "2026-01-01T00:00:00+00:00")
        recording.checkpoints.mkdir()
        (recording.checkpoints / "block-0-a.safetensors").touch()
        recording.end({}, interrupted=True)
        assert recording.checkpoints.exists()
        store.remove(recording.run)
        assert not recording.checkpoints.exists()
