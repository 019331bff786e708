"""The log of training has what was measured, and the package's own parser reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fairlap.errors import InvalidRequest
from fairlap.race.run import Run
from fairlap.render.outputs import write
from fairlap.request.fields.training import AdamW, Schedule, Sgd, Training
from fairlap.results.results import Results, results_of
from fairlap.scenarios.learning.training_messages import Evaluation, LearningCurve
from machine_marks import needs
from runs_for_rows import a_process, a_run
from runs_of_precisions import planned

needs("mlperf_logging")

BEGAN_MS = 1_767_323_045_000.0  # 2026-01-02T03:04:05 in UTC
COSINE = Training(AdamW(lr=0.002), Schedule("cosine", warmup=10, steps=100, floor=0.1))


def curve(*scores: float) -> LearningCurve:
    return LearningCurve(
        0.9,
        tuple(Evaluation(44 * n, 0.0105 * n, score, 1 - score) for n, score in enumerate(scores, start=1)),
    )


def trained(training: Training = COSINE) -> Results:
    """In block 1 jax does not reach the score, and in block 2 torch crashes after the epoch that reached it."""
    plan = planned(mode="train", blocks=3, batch=32)
    work = msgspec.structs.replace(plan.works[0], training=training)
    plan = msgspec.structs.replace(plan, works=(work,), to_score=0.9, most_epochs=3)
    processes = []
    for block in plan.blocks:
        for place in block.order:
            name = plan.contestants[place].text
            process = a_process(block.number, name, 1e6, work)
            process.learning = curve(0.5, 0.8, 0.85 if (name, block.number) == ("jax", 1) else 0.95)
            if (name, block.number) == ("torch", 2):
                process.outcome, process.code, process.timings = "crash", "E_CRASH", {}
            processes.append(process)
    return results_of(Run(plan, processes, {}, {}, began_at="2026-01-02T03:04:05+00:00"))


def log(results: Results, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """By namespace."""
    write(folder / "training.mllog", results)
    found: dict[str, list[dict[str, Any]]] = {}
    for line in (folder / "training.mllog").read_text().splitlines():
        assert line.startswith(":::MLLOG ")
        event = json.loads(line.removeprefix(":::MLLOG "))
        found.setdefault(event["namespace"], []).append(event)
    return found


def test_every_process_has_its_epochs_scores_and_end(tmp_path: Path) -> None:
    found = log(trained(), tmp_path)
    assert set(found) == {f"{name}/{block}" for name in ("torch", "jax") for block in range(3)}
    for namespace, events in found.items():
        of = {key: [each for each in events if each["key"] == key] for key in {each["key"] for each in events}}
        assert [each["metadata"]["epoch_num"] for each in of["epoch_start"]] == [1, 2, 3]
        assert [each["metadata"]["step_num"] for each in of["epoch_stop"]] == [44, 88, 132]
        assert [each["value"] for each in of["eval_accuracy"]][:2] == [0.5, 0.8]
        assert [each["time_ms"] - BEGAN_MS for each in of["eval_accuracy"]] == [10.5, 21.0, 31.5]
        assert [each["time_ms"] - BEGAN_MS for each in (*of["run_start"], *of["run_stop"])] == [0, 31.5]
        [stop] = of["run_stop"]
        aborted = namespace in ("jax/1", "torch/2")
        assert stop["metadata"]["status"] == ("aborted" if aborted else "success")
        assert stop["event_type"] == "INTERVAL_END"
        assert of["run_start"][0]["event_type"] == "INTERVAL_START"
        times = [each["time_ms"] for each in events]
        assert times == sorted(times)


def test_evaluation_that_counts_has_its_own_interval(tmp_path: Path) -> None:
    results = trained()
    for process in results.run.processes:
        assert process.learning is not None
        counted = tuple(
            msgspec.structs.replace(each, answered_s=0.0005 * n)
            for n, each in enumerate(process.learning.evaluations, start=1)
        )
        process.learning = msgspec.structs.replace(process.learning, evaluations=counted)
    for events in log(results, tmp_path).values():
        at = {
            key: [round(each["time_ms"] - BEGAN_MS, 3) for each in events if each["key"] == key]
            for key in ("epoch_start", "epoch_stop", "eval_start", "eval_accuracy", "eval_stop")
        }
        assert at["epoch_start"] == [0, 10.5, 21.0]
        assert at["epoch_stop"] == at["eval_start"] == [10.0, 20.5, 31.0]
        assert at["eval_accuracy"] == at["eval_stop"] == [10.5, 21.0, 31.5]


def test_an_epoch_that_was_not_scored_has_no_accuracy(tmp_path: Path) -> None:
    results = trained()
    for process in results.run.processes:
        assert process.learning is not None
        first, second, third = process.learning.evaluations
        seldom = (first, msgspec.structs.replace(second, score=None, loss=None), third)
        process.learning = msgspec.structs.replace(process.learning, evaluations=seldom, scored_every=3)
    for events in log(results, tmp_path).values():
        of = {key: [each for each in events if each["key"] == key] for key in ("epoch_stop", "eval_accuracy")}
        assert [each["metadata"]["epoch_num"] for each in of["epoch_stop"]] == [1, 2, 3]
        assert [each["metadata"]["epoch_num"] for each in of["eval_accuracy"]] == [1, 3]


def test_settings_are_those_of_the_plan(tmp_path: Path) -> None:
    def settings(training: Training) -> dict[str, Any]:
        events = log(trained(training), tmp_path)["torch/0"]
        return {each["key"]: each["value"] for each in events if each["event_type"] == "POINT_IN_TIME"}

    found = settings(COSINE)
    of_all = {"submission_benchmark": "mlp", "seed": 1, "global_batch_size": 32, "gradient_accumulation_steps": 1}
    assert found.items() >= of_all.items()
    assert (
        found.items()
        >= {
            "opt_name": "adamw",
            "opt_base_learning_rate": 0.002,
            "opt_adamw_beta_1": 0.9,
            "opt_adamw_beta_2": 0.999,
            "opt_adamw_epsilon": 1e-8,
            "opt_adamw_weight_decay": 0.01,
            "opt_learning_rate_warmup_steps": 10,
            "opt_learning_rate_training_steps": 100,
            "opt_learning_rate_decay_schedule": "cosine",
            "opt_end_learning_rate": pytest.approx(0.0002),
        }.items()
    )
    plain = settings(Training(Sgd(lr=0.1, momentum=0.9)))
    assert (plain["opt_name"], plain["opt_weight_decay"], plain["opt_base_learning_rate"]) == ("sgd", 0.0, 0.1)
    assert "opt_learning_rate_training_steps" not in plain
    [named] = [
        each for each in log(trained(Training(Sgd(momentum=0.5))), tmp_path)["jax/0"] if each["key"] == "opt_name"
    ]
    assert named["metadata"]["momentum"] == 0.5


def test_the_package_s_parser_reads_every_line_and_knows_the_keys(tmp_path: Path) -> None:
    from mlperf_logging.compliance_checker import mlp_parser
    from mlperf_logging.mllog import constants

    events = log(trained(), tmp_path)
    lines, failed = mlp_parser.parse_file(str(tmp_path / "training.mllog"), ruleset="4.1.0")
    assert failed == []
    assert len(lines) == sum(map(len, events.values()))
    known = {value for name, value in vars(constants).items() if name.isupper()}
    assert {line.key for line in lines} <= known
    files = {event["metadata"]["file"] for each in events.values() for event in each}
    assert files == {"fairlap/render/files/mllog_file.py"}  # nothing of where fairlap is installed


def test_a_run_that_trained_to_no_score_has_no_log(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as refused:
        write(tmp_path / "training.mllog", results_of(a_run()))
    assert refused.value.code == "E_OUTPUT_FORMAT"
    assert not (tmp_path / "training.mllog").exists()
