"""A user's language model answers token by token, in each runtime as transformers' own ``generate`` does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import invoke, refusal
from fairlap.models.array_files import safetensors
from fairlap.models.checks.answer_check import output_errors
from fairlap.models.sources.bundle import bundle_in, inputs_file, reference_file
from fairlap.race.planning.plan import Measuring
from fairlap.request.work import Work
from fairlap.scenarios.process_result import ProcessResult
from framework_python import skip_unless_available
from machine_marks import needs, needs_proc
from onnx_files import masked_lookup, opened
from own_generators import (
    GREEDY,
    OF_GREEDY,
    answers_of,
    generated_by_transformers,
    generating_folder,
    generating_source,
)
from small_races import run_race, small_plan
from spoilt_generation import FIRST_WITHOUT_TOKEN, MISTAKES, MISTAKES_OF_DECODERS, install_spoilt
from transformers_folders import folder_of

needs("torch", "transformers", "onnxscript")

pytestmark = [needs_proc, pytest.mark.slow, pytest.mark.usefixtures("own_cache", "offline")]

PROMPT, TOKENS = 9, 6
ENCODER_DECODERS = ("t5", "bart", "marian")
MOVES_NO_TOKEN = ("marian", "token-dropped")  # only logits, with the drawn weights
LAYERS, HEAD, BATCH, FLOAT = 2, 8, 2, 4
CACHE_OF_LLAMA = 2 * LAYERS * BATCH * HEAD * FLOAT * (PROMPT + TOKENS - 1)  # of one head; the last token is not read
CACHE_OF_T5 = 2 * LAYERS * BATCH * 2 * HEAD * FLOAT * (PROMPT + TOKENS)  # of two, and of what begins the answer


def generated(folder: Path, prompt: Any) -> tuple[Any, Any]:
    """Tokens, and the logits of each step, by transformers alone."""
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

    both = json.loads((folder / "config.json").read_text())["model_type"] in ENCODER_DECODERS
    ids = torch.from_numpy(np.array(prompt))
    model = (AutoModelForSeq2SeqLM if both else AutoModelForCausalLM).from_pretrained(folder, dtype=torch.float32)
    found = generated_by_transformers(model, ids, TOKENS)
    return found.sequences[:, -TOKENS:].numpy(), torch.stack(found.logits, dim=1).numpy()


@pytest.mark.parametrize(
    ("contestant", "name"),
    [
        *product(["torch", "torch:compile", "onnxruntime", "openvino"], ["gpt2", "llama", *ENCODER_DECODERS]),
        *product(["onnxruntime-genai"], ["gpt2", "llama"]),
    ],
)
def test_each_contestant_chooses_the_tokens_that_generate_chooses(tmp_path: Path, name: str, contestant: str) -> None:
    skip_unless_available(contestant)
    path = generating_folder(tmp_path / name, name)
    batch = 1 if contestant == "onnxruntime-genai" else BATCH
    folder, bundle = opened(generating_source(path, (PROMPT, TOKENS), batch), tmp_path)
    framework = contestant.partition(":")[0]
    assert bundle.routes["onnx" if framework.startswith("onnx") else framework].why_not == ""
    found = answers_of(folder, tmp_path, contestant)[contestant]
    tokens, logits = generated(path, safetensors.read(inputs_file(folder, "inputs"))["input_ids"])
    np.testing.assert_array_equal(found[GREEDY], tokens)
    alone, _ = generated(path, safetensors.read(inputs_file(folder, "inputs"))["input_ids"][-1:])
    np.testing.assert_array_equal(found[GREEDY][-1:], alone)  # the other prompt of the batch changes nothing
    if name not in ENCODER_DECODERS:  # small ones soon repeat themselves; their logits still differ
        assert len(np.unique(tokens)) > 2, "a constant answer would prove nothing"
    assert np.abs(logits[:, 1:] - logits[:, :-1]).max() > 0.1, "nor would the same logits in every step"
    np.testing.assert_allclose(found[OF_GREEDY + "logits"], logits, rtol=1e-3, atol=2e-4)
    reference = safetensors.read(reference_file(folder, "inputs"))
    for key, allowed in bundle.tolerances["fp32"].items():
        assert output_errors(key, found[key], reference[key], allowed).right


def test_an_answer_in_bfloat16_is_within_its_tolerance(tmp_path: Path) -> None:
    folder, bundle = opened(generating_source(generating_folder(tmp_path / "m", "llama"), (PROMPT, TOKENS)), tmp_path)
    found = answers_of(folder, tmp_path, "torch", precision="bf16")["torch"]
    reference = safetensors.read(reference_file(folder, "inputs"))
    errors = [output_errors(key, found[key], reference[key], each) for key, each in bundle.tolerances["bf16"].items()]
    assert [error.why for error in errors if not error.right] == []
    assert max(error.relative_error for error in errors) > 1e-4, "it must have been computed in bfloat16"


def raced_with_mistakes(folder: Path, tokens: int, mistakes: Iterable[str]) -> dict[str, ProcessResult]:
    """Race the contestant without a mistake, which finishes, and with each."""
    source = generating_source(folder, (PROMPT, tokens))
    plan = small_plan(
        ",".join(["spoilt", *(f"spoilt:{mistake}" for mistake in mistakes)]),
        Work(source.name, 2, source=source),
        measuring=Measuring(seconds=0.05),
    )
    found = {process.contestant: process for process in run_race(plan).processes}
    assert found["spoilt"].outcome == "finished", found["spoilt"].message
    return found


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_mistakes_with_a_cache_are_disqualified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    install_spoilt(tmp_path / "installed", monkeypatch)
    found = raced_with_mistakes(generating_folder(tmp_path / name, name), TOKENS, MISTAKES)
    for mistake in MISTAKES:
        assert (found[f"spoilt:{mistake}"].outcome, found[f"spoilt:{mistake}"].code) == ("disqualified", "E_OUTPUT")


@pytest.mark.parametrize("name", ENCODER_DECODERS)
def test_mistakes_of_decoders_are_disqualified_with_the_first_token_that_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    install_spoilt(tmp_path / "installed", monkeypatch)
    found = raced_with_mistakes(generating_folder(tmp_path / name, name), 9, MISTAKES_OF_DECODERS)
    for mistake in MISTAKES_OF_DECODERS:
        process = found[f"spoilt:{mistake}"]
        assert (process.outcome, process.code) == ("disqualified", "E_OUTPUT")
        token = re.search(r"token (\d+) of prompt \d+ is \d+", process.message)
        assert (token is None) == ((name, mistake) == MOVES_NO_TOKEN), process.message
        assert token is None or int(token[1]) >= (FIRST_WITHOUT_TOKEN if mistake == "token-dropped" else 1)


@pytest.mark.parametrize(("name", "kept_bytes"), [("llama", CACHE_OF_LLAMA), ("t5", CACHE_OF_T5)])
def test_a_race_shows_when_tokens_came_and_how_the_model_got_there(tmp_path: Path, name: str, kept_bytes: int) -> None:
    for contestant in ("onnxruntime", "openvino"):
        skip_unless_available(contestant)
    folder = generating_folder(tmp_path / "m", name)
    on = "torch,onnxruntime,openvino,jax"
    short = ("--blocks", 1, "--seconds", 0.2, "--threads", 1, "--no-store", "--json")
    done = invoke("compare", f"hf:{folder}", "--generate", "9:6", "--batch", 2, "--on", on, *short)
    assert done.exit_code == 0, done.output
    rows = {row["contestant"]: row for row in json.loads(done.stdout)["rows"]}
    assert rows.pop("jax")["code"] == "E_UNSUPPORTED"
    for row in rows.values():
        assert row["outcome"] == "finished", row
        assert row["time_to_first_token_ns"]["value"] > 0
        assert row["token_gap_p99_ns"]["value"] >= row["time_per_output_token_ns"]["value"] > 0
        assert row["tokens_per_s"]["value"] == pytest.approx(2 * TOKENS * 1e9 / row["latency_p50_ns"]["value"])
        assert row["tokens_per_prompt_per_s"]["value"] == pytest.approx(row["tokens_per_s"]["value"] / 2)
        assert row["memory_bytes"]["key_value_cache"] == kept_bytes
        assert 0 < row["error_relative"] < 1e-5
    assert rows["torch"]["route"] == "native"
    assert rows["onnxruntime"]["route"] == rows["openvino"]["route"] != "native"


@pytest.mark.parametrize(
    ("name", "changes", "options", "code"),
    [
        ("bert", {}, ("--generate", "4:4"), "E_SOURCE"),
        ("bert", {"architectures": ["BertLMHeadModel"]}, ("--generate", "4:4"), "E_SOURCE"),  # reads both ways
        ("t5", {"architectures": ["T5Model"]}, ("--generate", "4:4"), "E_SOURCE"),  # has no logits
        ("t5", {"decoder_start_token_id": None}, ("--generate", "4:4"), "E_SOURCE"),
        ("bart", {}, ("--generate", "33:4"), "E_SHAPES"),  # the context of its encoder is 32
        ("bart", {}, ("--generate", "4:33"), "E_SHAPES"),
        ("gpt2", {}, ("--generate", "30:4"), "E_SHAPES"),  # its context is 32
        ("gpt2", {}, ("--generate", "8"), "E_SHAPES"),
        ("gpt2", {}, ("--generate", "8:1"), "E_SHAPES"),
        ("gpt2", {}, ("--generate", "0:4"), "E_SHAPES"),
        ("gpt2", {}, ("--generate", "8:4", "--shapes", "input_ids:2x6"), "E_SHAPES"),
        ("gpt2", {}, ("--generate", "8:4", "--dims", "sequence=6"), "E_SHAPES"),
        ("gpt2", {}, ("--generate", "8:4", "--range", "input_ids:0..40"), "E_SHAPES"),
        ("gpt2", {}, ("--generate", "8:4", "--mode", "grad"), "E_NO_GRADIENTS"),
    ],
)
def test_what_cannot_answer_is_refused_in_one_line(
    tmp_path: Path, name: str, changes: dict[str, Any], options: tuple[str, ...], code: str
) -> None:
    folder = folder_of(tmp_path / "m", name, **changes)
    refused = refusal("compare", f"hf:{folder}", "--on", "torch", "--no-store", "--quiet", *options)
    assert refused.code == code
    assert "\n" not in str(refused)


def test_genai_refuses_what_it_cannot_be_handed(tmp_path: Path) -> None:
    skip_unless_available("onnxruntime-genai")
    on = ("--on", "onnxruntime-genai,torch")
    short = ("--blocks", 1, "--seconds", 0.05, "--threads", 1, "--no-store", "--json")
    for name, batch, outcome in (("t5", 1, "E_UNSUPPORTED"), ("gpt2", 2, "E_UNSUPPORTED"), ("gpt2", 1, "")):
        folder = generating_folder(tmp_path / f"{name}-{batch}", name)
        done = invoke("compare", f"hf:{folder}", "--generate", "9:6", "--batch", batch, *on, *short)
        assert done.exit_code == 0, done.output
        rows = {row["contestant"]: row for row in json.loads(done.stdout)["rows"]}
        assert (rows["onnxruntime-genai"]["code"] or "") == outcome, rows["onnxruntime-genai"]
        assert rows["torch"]["outcome"] == "finished"
    held = [row["memory_bytes"]["key_value_cache"] for row in rows.values()]
    assert held[0] == held[1] == 2 * LAYERS * 2 * HEAD * FLOAT * (PROMPT + TOKENS - 1)


def test_only_models_of_transformers_of_one_s_own_take_the_option(tmp_path: Path) -> None:
    file = masked_lookup(tmp_path / "m.onnx")
    for model in ("characters_generate", file):
        refused = refusal("compare", model, "--on", "onnxruntime", "--generate", "8:4", "--no-store", "--quiet")
        assert refused.code == "E_SHAPES"


def test_an_answer_may_fill_the_whole_context(tmp_path: Path) -> None:
    path = generating_folder(tmp_path / "m", "gpt2")
    folder, _ = opened(generating_source(path, (29, 4), batch=None), tmp_path)
    assert bundle_in(folder).batch == 1
    assert bundle_in(folder).spec.tokens_of_an_answer == 4
