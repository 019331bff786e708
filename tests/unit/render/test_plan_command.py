"""The command that a report shows draws the plan of the run: from request to plan to command and to the same plan."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from example_installed import install_example
from fairlap.cli.commands.compare import _requested, command
from fairlap.errors import InvalidRequest
from fairlap.models.sources.registry import kinds
from fairlap.race.around_blocks.settings_search import SettingsSearch
from fairlap.race.planning.plan import Limits, Measuring, Plan, SkippedWork
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.render.plan_command import command_of
from fairlap.request.race_request import RaceRequest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st


def request_in(words: list[str]) -> RaceRequest:
    """As the command line reads it."""
    given_options = command.make_context("compare", words).params
    own = ("dry_run", "save_plan", "plan_file", "resume", "store", "quiet", "as_json")
    models = given_options.pop("models")
    return _requested(models, {name: value for name, value in given_options.items() if name not in own and value})


def planned(*words: object) -> Plan:
    return plan_of(request_in([str(word) for word in words]))


def again(plan: Plan) -> Plan:
    text = command_of(plan)
    assert text, "no command draws it"
    fairlap, compare, *words = shlex.split(text)
    assert (fairlap, compare) == ("fairlap", "compare")
    return planned(*words)


def options(name: str, values: st.SearchStrategy[object]) -> st.SearchStrategy[list[str]]:
    """Draw the option, or nothing."""
    return st.one_of(st.just([]), values.map(lambda value: [name, str(value)]))


def some(*names: str) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(names), min_size=1, unique=True).map(",".join)


SHARES = st.sampled_from(("2%", "0.125", "0.0123456789"))
REQUESTS = st.tuples(
    st.lists(st.sampled_from(("mlp", "convnet", "tabular")), min_size=1, unique=True),
    st.just(["--on"]),
    some("torch", "torch:compile:mode=max-autotune", "jax==0.4.30", "onnxruntime:best", "openvino:hint=throughput").map(
        lambda names: [names]
    ),
    options("--batch", st.sampled_from(("1", "8", "4,1", "2,3,4"))),
    options("--precision", some("fp32", "bf16", "autocast")),
    options("--blocks", st.integers(1, 9)),
    options("--seconds", st.sampled_from(("20ms", "0.123456789s", "1m"))),
    options("--threads", st.just(1)),
    options("--conditions", st.sampled_from(("controlled", "as-found", "both"))),
    options("--seed", st.integers(0, 2**31)),
    options("--data-seed", st.integers(0, 9)),
    options("--memory-limit", st.integers(2**30, 2**40)),
    options("--max-batch", st.integers(8, 2**20)),
    options("--target", SHARES),
    st.sampled_from(
        (
            [],
            ["--mode", "infer,grad"],
            ["--mode", "train"],
            ["--mode", "train", "--optimizer", "adamw:lr=0.002,decay=0.05", "--schedule", "cosine:steps=9"],
            ["--recompile", "float64,7,1,float16"],
        )
    ),
    st.sampled_from(([], ["--min-memory"], ["--profile"], ["--only-winner"], ["--data", "synthetic"])),
).map(lambda parts: [word for part in parts for word in part])


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(REQUESTS)
def test_the_command_of_a_plan_draws_the_same_plan_again(words: list[str]) -> None:
    try:
        plan = planned(*words)
    except InvalidRequest:  # such as data that are fed in mode grad
        reject()
    assert again(plan) == plan


def test_across_precisions_with_a_bound_on_the_error_too() -> None:
    words = ("mlp", "--on", "torch,jax", "--precision", "fp32,bf16", "--across-precisions", "--max-drop", "1.5%")
    plan = planned(*words, "--batch", "8,2", "--blocks", 3)
    assert again(plan) == plan


@pytest.mark.parametrize("more", [(), ("--train-on", "breast_cancer"), ("--metric", "f1", "--fraction", "12.5%")])
def test_training_to_a_score_too(more: tuple[str, ...]) -> None:
    pytest.importorskip("sklearn")
    learning = ("tabular", "--on", "torch,jax", "--mode", "train", "--to-score", "93.21%", "--count-evaluation")
    plan = planned(*learning, *more)
    assert again(plan) == plan


def test_operations_of_a_pattern_are_named_and_those_that_were_skipped_are_not_part_of_it() -> None:
    plan = planned("gemm-m64-n64-k64", "embedding-r10-d4-n2", "--on", "torch,jax")
    skipped = msgspec.structs.replace(plan, skipped=(SkippedWork("gemm-m9-n9-k9", "it takes long"),))
    assert again(skipped) == plan


def test_what_a_search_found_is_searched_again_and_the_rest_of_the_plan_is_the_same() -> None:
    plan = planned("mlp", "--on", "torch:best,jax", "--best-budget", "9s")
    found = msgspec.structs.replace(plan.contestants[0], variant="compile")
    search = SettingsSearch("torch:best", {}, {"variant": "compile"}, 0.5, (), "complete", 1.0, 0)
    searched = msgspec.structs.replace(plan, contestants=(found, plan.contestants[1]), searches=(search,))
    assert again(searched) == plan


@pytest.fixture
def own_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    install_example(tmp_path / "installed", monkeypatch)
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    kinds.cache_clear()
    (tmp_path / "m.linear.json").write_text(json.dumps({"matrix": [[1.0, 2.0], [3.0, 4.0]]}))
    yield "m.linear.json"
    kinds.cache_clear()


@pytest.mark.slow
def test_a_model_of_ones_own_is_named_as_it_was_with_its_batches(own_model: str) -> None:
    plan = planned(own_model, "mlp", "--on", "example,torch", "--batch", "4,2", "--blocks", 2)
    assert again(plan) == plan
    alone = planned(own_model, "--on", "example", "--blocks", 2)
    assert again(alone) == alone


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 8},
        {"limits": Limits(start_s=1.0)},
        {"measuring": Measuring(samples=7)},
        {"profile_processes": 2},
        {"best_budget_s": 7.0},
        {"blocks": ()},
        {"works": ()},
    ],
)
def test_of_a_plan_that_no_options_give_there_is_no_command(changes: dict[str, Any]) -> None:
    plan = planned("mlp", "--on", "torch,jax", "--blocks", 2, "--threads", 1, "--seed", 7)
    assert again(plan) == plan
    assert command_of(msgspec.structs.replace(plan, **changes)) == ""


@pytest.mark.slow
def test_a_model_that_answers_is_named_with_its_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers", reason="`make test` installs it and runs this")
    from own_generators import generating_folder

    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    folder = generating_folder(tmp_path / "m", "gpt2")
    plan = planned(f"hf:{folder}", "--generate", "7:4", "--on", "torch", "--batch", "2,1", "--blocks", 2)
    assert [work.source.generate for work in plan.works if work.source] == [(7, 4), (7, 4)]
    assert again(plan) == plan


def test_combinations_that_are_not_all_raced_have_no_command() -> None:
    plan = planned("mlp", "convnet", "--on", "torch", "--batch", "4,2", "--blocks", 2)
    assert command_of(msgspec.structs.replace(plan, works=plan.works[:-1])) == ""


def test_an_older_plan_without_its_cores_has_the_command_where_its_blocks_show_them_all() -> None:
    plan = planned("mlp", "--on", "torch,jax", "--blocks", 3, "--conditions", "as-found")
    assert again(msgspec.structs.replace(plan, available_cores=())) == plan


@pytest.mark.parametrize(
    "words",
    [
        ("--threads", "1,2"),
        ("--threads", "1", "--processes", "1,2"),
        ("--threads", "1", "--processes", "2", "--scaling", "weak"),
        ("--threads", "1,2", "--processes", "1,4", "--hosts", "a,b"),
    ],
)
def test_several_scales_are_named_as_they_were(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: {0, 1, 2, 3})
    plan = planned("mlp", "convnet", "--on", "torch,jax", "--batch", "8,16", "--blocks", 2, *words)
    assert len(plan.works) > 2
    assert again(plan) == plan
    assert command_of(msgspec.structs.replace(plan, works=plan.works[:-1])) == ""


def test_a_locked_clock_is_part_of_the_plan_and_of_its_command() -> None:
    plan = planned("mlp", "--on", "torch,jax", "--device", "cuda:0", "--lock-clocks", "1410", "--blocks", 3)
    assert (plan.lock_clocks, again(plan)) == ("1410", plan)
    with pytest.raises(InvalidRequest, match="--device cuda"):
        planned("mlp", "--on", "torch,jax", "--lock-clocks", "base")


@pytest.mark.parametrize(
    "words", [("--cache", "cold"), ("--regime", "burst"), ("--cache", "cold", "--regime", "sustained")]
)
def test_conditions_of_a_gpu_are_part_of_the_work_and_of_its_command(words: tuple[str, ...]) -> None:
    given = ("mlp", "convnet", "--on", "torch,jax", "--device", "cuda:0", "--blocks", 3)
    warm, plan = planned(*given), planned(*given, *words)
    assert again(plan) == plan
    assert {work.id for work in plan.works}.isdisjoint(work.id for work in warm.works)
    assert all(work.label.endswith(plan.works[0].on_device.text) for work in plan.works)  # type: ignore[union-attr]
