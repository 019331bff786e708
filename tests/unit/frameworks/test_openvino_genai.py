"""OpenVINO GenAI step by step, over a stand-in for its pipeline: a token of every prompt in each step, and no other."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fairlap.frameworks.contract import Contestant, Settings, Unsupported
from fairlap.frameworks.runtimes.openvino_genai import OpenVinoGenAi
from runtimes_on_fakes import VERSION, answer_to, install_openvino_genai, work_of

PROMPTS, HANDED = [[1, 2, 3, 4], [1, 2, 7, 5]], [[3, 1], [9, 8]]
FILE = Path("/folder/openvino_model.xml")


def prepared(prompts: Any = PROMPTS) -> Contestant:
    work = work_of(prompts, HANDED[: len(prompts)], SimpleNamespace(file=FILE))
    return OpenVinoGenAi().prepare(work, Settings(2), lambda _: nullcontext())


def test_each_prompt_is_answered_after_the_tokens_that_it_chose_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    made, contestant = install_openvino_genai(monkeypatch), prepared()
    inputs = work_of(PROMPTS, HANDED, None).inputs
    for _ in range(2):
        answer = contestant.outputs(contestant.bind(inputs)())
        assert answer["own_tokens"].tolist() == [answer_to(prompt, 3) for prompt in PROMPTS]
    [pipeline] = made
    assert pipeline.largest_step == 8, "the first step reads all prompts"
    assert contestant.notices is not None
    assert [notice.code for notice in contestant.notices()] == ["W_TOKENS_ALONE"]
    assert contestant.cache_bytes is not None
    assert contestant.cache_bytes() == 4096


def test_an_answer_that_was_left_is_ended_before_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    made, contestant = install_openvino_genai(monkeypatch), prepared()
    steps = contestant.bind.__self__.generation  # type: ignore[attr-defined]
    inputs = work_of(PROMPTS, HANDED, None).inputs
    steps.first(inputs["input_ids"])
    answer = contestant.outputs(contestant.bind(inputs)())
    assert answer["own_tokens"].tolist() == [answer_to(each, 3) for each in PROMPTS]
    assert not made[0].has_non_finished_requests()


def test_products_and_cache_are_asked_for_in_float32_and_nothing_is_kept_of_other_prompts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, contestant = install_openvino_genai(monkeypatch), prepared()
    [pipeline] = made
    assert (pipeline.folder, pipeline.device) == (str(FILE.parent), "CPU")
    asked = ("INFERENCE_PRECISION_HINT", "KV_CACHE_PRECISION", "INFERENCE_NUM_THREADS")
    assert [pipeline.properties[each] for each in asked] == ["f32", "f32", 2]
    assert pipeline.scheduler.enable_prefix_caching is False
    assert contestant.in_force["prefix_caching"] == "off"
    contestant.bind(work_of(PROMPTS, HANDED, None).inputs)()
    [config, *_] = pipeline.configs
    assert (config.max_new_tokens, config.ignore_eos, config.do_sample) == (3, True, False)


def test_its_version_is_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    install_openvino_genai(monkeypatch)
    adapter = OpenVinoGenAi()
    work = work_of(PROMPTS, HANDED, SimpleNamespace(file=FILE))
    adapter.prepare(work, Settings(1), lambda _: nullcontext())
    assert adapter.version() == VERSION


@pytest.mark.parametrize(
    "changed",
    [
        {"package": "fairlap.bench_models.gpt2_generate"},
        {"spec": SimpleNamespace(continuation="")},
        {"precision": "bf16"},
    ],
)
def test_all_but_models_of_one_s_own_that_generate_is_refused(changed: dict[str, Any]) -> None:
    work = work_of(PROMPTS, HANDED, SimpleNamespace(file=FILE), **changed)
    with pytest.raises(Unsupported):
        OpenVinoGenAi().prepare(work, Settings(1), lambda _: nullcontext())
