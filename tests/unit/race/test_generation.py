"""Races of answers that come token by token, by contestants of known times: what they show, and who is caught."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fairlap.bench_models.characters.spec import SIZE
from fairlap.models.array_files import safetensors
from fairlap.models.spec import Tolerance
from fairlap.race.equal_work.answers import OtherWork, reference_errors, require_changed, require_right
from fairlap.race.planning.plan import Limits, Measuring
from fairlap.race.run import Run
from fairlap.render.text.terminal import text_of
from fairlap.request.fields.load import Load
from fairlap.request.work import Work
from fairlap.results.columns.generation import OF_GENERATION
from fairlap.results.results import results_of
from fairlap.scenarios.calls.race.inference import Inference
from generating_framework import EACH_S, FIRST_S, install_generating
from machine_marks import needs_proc
from small_races import run_race, small_plan

pytestmark = needs_proc

TOKENS = 16
MODEL = "characters_generate"


@pytest.fixture(autouse=True)
def generating(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_generating(tmp_path / "installed", monkeypatch)
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))


def raced(contestants: str, load: Load | None = None, batch: int = 1) -> Run:
    plan = small_plan(
        contestants,
        Work(MODEL, batch, load=load),
        measuring=Measuring(seconds=0.3),
        limits=Limits(start_s=60, prepare_s=60, answer_s=60, measure_s=60),
    )
    race = run_race(plan)
    return Run(plan, race.processes, {}, race.shares())


def test_times_of_the_first_token_and_of_those_after_it_are_those_that_were_slept() -> None:
    run = raced("generating", batch=2)
    [process] = run.processes
    assert process.outcome == "finished", process.message
    results = results_of(run, "r")
    [row] = results.rows
    assert row.time_to_first_token_ns is not None
    assert row.time_per_output_token_ns is not None
    assert row.token_gap_p99_ns is not None
    assert row.tokens_per_s is not None
    assert row.latency_p50_ns is not None
    first_ns, each_ns = row.time_to_first_token_ns.value, row.time_per_output_token_ns.value
    assert 1e9 * FIRST_S <= first_ns < row.latency_p50_ns.value  # more than they slept, on a busy machine
    assert 1e9 * EACH_S <= each_ns <= row.token_gap_p99_ns.value
    # The parts are of medians, and the whole is the median of wholes, which other programs delay now and then.
    assert first_ns + (TOKENS - 1) * each_ns == pytest.approx(row.latency_p50_ns.value, rel=0.5)
    assert row.tokens_per_s.value == pytest.approx(2 * TOKENS / row.latency_p50_ns.value * 1e9, rel=0.01)
    assert row.tokens_per_prompt_per_s is not None
    assert row.tokens_per_prompt_per_s.value == pytest.approx(row.tokens_per_s.value / 2)
    positions = 32 + TOKENS - 1  # the last token is not read
    assert row.memory_bytes["key_value_cache"] == 2 * SIZE.layers * 2 * positions * SIZE.width * 4
    assert "tokens/s" in text_of(results)


@pytest.mark.slow
def test_a_model_that_does_not_generate_has_no_times_of_tokens(example: None) -> None:
    plan = small_plan("example", Work("mlp", 1), measuring=Measuring(seconds=0.02))
    race = run_race(plan)
    [row] = results_of(Run(plan, race.processes, {}, race.shares()), "r").rows
    assert all(row.absent[column] for column in OF_GENERATION)
    assert row.memory_absent["key_value_cache"]


@pytest.mark.slow
def test_a_runtime_without_logits_is_ranked_by_its_tokens_and_shows_no_error() -> None:
    run = raced("generating:alone", batch=2)
    [process] = run.processes
    assert process.outcome == "finished", process.message
    assert [warning.code for warning in process.warnings].count("W_TOKENS_ALONE") == 1
    [row] = results_of(run, "r").rows
    assert row.latency_p50_ns is not None
    assert (row.error_relative, row.error_absolute) == (None, None)
    assert "tokens" in row.absent["error_relative"]
    assert row.answers == "agree with the reference"


@pytest.mark.slow_but("wrong-token")
@pytest.mark.parametrize(("variant", "token"), [("wrong-step-alone", 6), ("wrong-token-alone", 1)])
def test_a_token_that_the_reference_does_not_choose_disqualifies_one_without_logits(variant: str, token: int) -> None:
    [process] = raced(f"generating:{variant}").processes
    assert (process.outcome, process.code) == ("disqualified", "E_OUTPUT"), process.message
    assert f"token {token} of prompt 1 " in process.message
    assert "finite" not in process.message


@pytest.mark.slow_but("wrong-token", "kept-cache")
@pytest.mark.parametrize("variant", ["wrong-step", "no-cache", "kept-cache", "wrong-token"])
def test_a_contestant_that_answers_otherwise_is_disqualified(variant: str) -> None:
    [process] = raced(f"generating:{variant}").processes
    assert (process.outcome, process.code) == ("disqualified", "E_OUTPUT"), process.message
    token = {"wrong-step": 6, "no-cache": 2, "wrong-token": 1}.get(variant)
    assert token is None or f"token {token} of prompt 1 " in process.message


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["kept-prompt", pytest.param("kept-prompt-alone", marks=pytest.mark.slow)])
def test_prompts_that_a_cache_has_read_before_disqualify_although_answers_take_as_long(variant: str) -> None:
    """The prompt is a fifth of the time of an answer, and all of the time to its first token.

    Times of a race beside other tests may scatter too much to accuse anybody, so it has three tries.
    """
    found = {raced(f"generating:{variant}").processes[0].code for _ in range(3)}
    assert "E_KEPT_ANSWERS" in found


def materials_within(absolute: float) -> Any:
    outputs = [SimpleNamespace(name="logits"), SimpleNamespace(name="chosen_logits")]
    return SimpleNamespace(
        spec=SimpleNamespace(continuation="continuation", outputs=outputs),
        work=SimpleNamespace(precision="bf16"),
        tolerance=lambda _: Tolerance(cosine=0.99, absolute=absolute, relative=0.001),
    )


def answer_of(logits: np.ndarray) -> dict[str, np.ndarray]:
    return {"logits": logits, "chosen_logits": logits.max(axis=2)}


RIGHT = np.array([[[3.0, 2.0, 1.0], [1.0, 3.0, 2.98], [2.0, 1.0, 3.0]]])


def test_a_right_answer_with_another_token_shows_where_and_by_how_much() -> None:
    materials, got = materials_within(0.05), RIGHT.copy()
    got[0, 1] = [1.0, 2.98, 3.0]
    errors = reference_errors(materials, answer_of(got), answer_of(RIGHT), "before")
    assert all(error.right for error in errors)
    [notice] = Inference().notices(errors)
    assert notice.code == "W_OTHER_TOKENS"
    assert re.findall(r"\d+(?:\.\d+)?", notice.text) == ["2", "3", "2", "1", "2", "1", "0.02"]
    assert Inference().notices(reference_errors(materials, answer_of(RIGHT), answer_of(RIGHT), "before")) == []


@pytest.mark.parametrize("name", ["chosen_tokens", "own_tokens"])
def test_tokens_alone_are_right_within_the_bound_of_the_logits_and_wrong_beyond(name: str) -> None:
    got = {name: np.array([[0, 2, 2]])}  # the second is another one, by 0.02
    [near] = reference_errors(materials_within(0.05), got, answer_of(RIGHT), "before")
    assert near.right
    [notice] = Inference().notices([near])
    assert (notice.code, re.findall(r"\d+(?:\.\d+)?", notice.text)) == (
        "W_OTHER_TOKENS",
        ["2", "3", "2", "1", "2", "1", "0.02"],
    )
    [far] = reference_errors(materials_within(0.01), got, answer_of(RIGHT), "before")
    assert (far.right, far.has_distance, near.has_distance) == (False, False, False)
    assert re.findall(r"\d+(?:\.\d+)?", far.why) == ["2", "1", "2", "1", "0.02", "0.01"]
    with pytest.raises(OtherWork) as refused:
        require_right([far], {})
    assert refused.value.code == "E_OUTPUT"


@pytest.mark.parametrize("tokens", [[[0, 1]], [[0, 1, 3]], [[0, -1, 2]], [[0, 1, 2], [0, 1, 2]]])
def test_tokens_of_another_number_or_none_of_the_vocabulary_are_wrong(tokens: list[list[int]]) -> None:
    [error] = reference_errors(materials_within(9.0), {"own_tokens": np.array(tokens)}, answer_of(RIGHT), "before")
    assert (error.right, error.why != "") == (False, True)


def test_the_same_tokens_for_two_prompts_are_no_kept_answer(tmp_path: Path) -> None:
    file = tmp_path / "answer.safetensors"
    safetensors.write(file, {"own_tokens": np.array([[7, 7, 7]])})
    require_changed(file, file)
    safetensors.write(file, {"logits": RIGHT})
    with pytest.raises(OtherWork):
        require_changed(file, file)


@pytest.mark.slow
def test_a_token_that_is_not_on_the_host_fails() -> None:
    [process] = raced("generating:promised-token").processes
    assert process.outcome == "failed", process.message


@pytest.mark.slow
def test_a_bound_on_the_first_token_alone_is_met_by_the_rate_that_is_found() -> None:
    bound_s = 0.25
    run = raced("generating", Load(0.9, None, trial_s=1.0, first_token_s=bound_s))
    [process] = run.processes
    assert process.outcome == "finished", process.message
    assert process.load is not None
    assert process.load.limited_by in ("first_token", "capacity")
    last = process.load.at_largest_rate
    assert last is not None
    assert last.late_first_tokens <= 0.1 * last.requests
    [row] = results_of(run, "r").rows
    assert row.largest_rate_per_s is not None, row.absent
    assert row.first_token_at_largest_rate_p50_ns is not None
    assert row.first_token_at_largest_rate_p50_ns.value <= 1e9 * bound_s
    assert row.load == "first token p90 within 250 ms"
    assert all(point.first_token_p99_ns is not None for point in row.latency_by_rate)


@pytest.mark.slow
def test_the_first_token_counts_from_when_its_request_was_due_under_load() -> None:
    run = raced("generating", Load(0.9, 1.0, trial_s=1.0))
    [process] = run.processes
    assert process.outcome == "finished", process.message
    [row] = results_of(run, "r").rows
    assert row.first_token_at_largest_rate_p50_ns is not None, row.absent
    assert row.first_token_at_largest_rate_p99_ns is not None
    assert row.output_token_at_largest_rate_p50_ns is not None
    assert row.output_token_at_largest_rate_p99_ns is not None
    assert row.tokens_at_largest_rate_per_s is not None
    assert row.latency_at_largest_rate_p50_ns is not None
    first_ns = row.first_token_at_largest_rate_p50_ns.value
    assert 1e9 * FIRST_S <= first_ns <= row.first_token_at_largest_rate_p99_ns.value
    assert 1e9 * EACH_S <= row.output_token_at_largest_rate_p50_ns.value < 6e9 * EACH_S
    assert first_ns + 15e9 * EACH_S < 1.05 * row.latency_at_largest_rate_p50_ns.value
    assert row.tokens_at_largest_rate_per_s.value < TOKENS / (FIRST_S + 15 * EACH_S)


@pytest.mark.slow
def test_under_load_a_runtime_without_logits_is_checked_by_its_tokens_and_loadgen_left_out() -> None:
    [process] = raced("generating:alone", Load(0.9, 1.0, trial_s=0.5)).processes
    assert process.outcome == "finished", process.message
    assert process.load is not None
    assert process.load.largest_rate_per_s
    assert process.load.loadgen is None
    assert "tokens" in process.load.loadgen_absent
    assert any(error.when != "before" for error in process.errors)
    [wrong] = raced("generating:wrong-step-alone", Load(0.9, 1.0, trial_s=0.5)).processes
    assert (wrong.outcome, wrong.code) == ("disqualified", "E_OUTPUT")
