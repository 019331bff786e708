"""Runtimes that hand out no logits answer as transformers' own ``generate`` does, and what they leave out is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import invoke
from fairlap.models.array_files import safetensors
from fairlap.models.checks.token_check import first_beyond
from fairlap.models.sources.bundle import inputs_file, reference_file
from fairlap.race.planning.plan import Measuring
from fairlap.request.fields.source import Source
from fairlap.request.work import Work
from framework_python import skip_unless_available
from gguf_files import folder_for_gguf, gguf_of, gguf_source
from machine_marks import needs, needs_proc
from onnx_files import opened
from own_generators import (
    GREEDY,
    answers_of,
    generated_by_transformers,
    generating_folder,
    generating_source,
)
from runtimes_without_logits import install_runtimes
from small_races import run_race, small_plan
from spoilt_generation import MISTAKES

needs("torch", "transformers", "gguf", "onnxscript")

pytestmark = [needs_proc, pytest.mark.slow, pytest.mark.usefixtures("own_cache", "offline")]

PROMPT, TOKENS = 9, 12
SHORT = ("--blocks", 1, "--seconds", 0.2, "--threads", 1, "--no-store", "--json")
LONG: dict[str, Any] = {"max_position_embeddings": 512}


def generated(folder: Path, prompt: np.ndarray, tokens: int) -> np.ndarray:
    """Let transformers alone answer."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    found = generated_by_transformers(model, torch.from_numpy(np.array(prompt)), tokens)
    answer: np.ndarray = found.sequences[:, -tokens:].numpy()
    return answer


def raced(contestants: str, source: Source, seconds: float = 0.05) -> dict[str, tuple[str, str, str]]:
    """Return the outcome, code and message of each."""
    plan = small_plan(contestants, Work(source.name, source.batch or 1, source=source), measuring=Measuring(seconds))
    return {each.contestant: (each.outcome, each.code, each.message) for each in run_race(plan).processes}


def test_tokens_that_a_contestant_chose_and_read_are_compared_with_the_reference_after_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_runtimes(tmp_path / "installed", monkeypatch)
    source = generating_source(generating_folder(tmp_path / "m", "llama"), (PROMPT, TOKENS))
    found = raced(",".join(["own-tokens", *(f"own-tokens:{mistake}" for mistake in MISTAKES)]), source)
    assert found["own-tokens"][0] == "finished", found
    for mistake in MISTAKES:
        outcome, code, message = found[f"own-tokens:{mistake}"]
        assert (outcome, code) == ("disqualified", "E_OUTPUT"), message
        assert "token " in message


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_openvino_genai_chooses_the_tokens_that_generate_chooses(tmp_path: Path, name: str) -> None:
    skip_unless_available("openvino-genai")
    made = generating_folder(tmp_path / name, name)
    folder, bundle = opened(generating_source(made, (PROMPT, TOKENS), 2), tmp_path)
    assert bundle.routes["openvino-genai"].why_not == ""
    found = answers_of(folder, tmp_path, "openvino-genai")["openvino-genai"]
    right = generated(made, safetensors.read(inputs_file(folder, "inputs"))["input_ids"], TOKENS)
    assert len(np.unique(right)) > 2, "a constant answer would prove nothing"
    np.testing.assert_array_equal(found["own_tokens"], right)


@pytest.mark.parametrize("kind", ["F32", "F16", "Q8_0", "Q4_0"])
def test_llama_cpp_chooses_the_tokens_of_the_reference_within_what_the_types_of_the_file_explain(
    tmp_path: Path, kind: str
) -> None:
    skip_unless_available("llama-cpp")
    made = folder_for_gguf(tmp_path / "hf")
    folder, bundle = opened(gguf_source(gguf_of(made, tmp_path / "m.gguf", kind), (PROMPT, TOKENS), 2), tmp_path)
    found = answers_of(folder, tmp_path, "llama-cpp")["llama-cpp"]
    reference = safetensors.read(reference_file(folder, "inputs"))
    bounds = bundle.routes["llama-cpp"].bounds
    assert bounds == {"F32": None, "F16": "fp16"}.get(kind, "bf16")
    allowed = bundle.tolerances[bounds or "fp32"]["chosen_logits"]
    room = np.maximum(allowed.absolute, allowed.relative * np.abs(reference["chosen_logits"]))
    assert first_beyond(found["chosen_tokens"], reference["logits"], room) == ""
    same = found["chosen_tokens"] == reference["logits"].argmax(axis=2)
    assert same.mean() > 0.8
    if kind == "F32":
        assert same.all()
        prompts = safetensors.read(inputs_file(folder, "inputs"))["input_ids"]
        np.testing.assert_array_equal(found[GREEDY], generated(made, prompts, TOKENS))


def test_a_race_of_llama_cpp_ranks_it_and_shows_how_it_was_proven(tmp_path: Path) -> None:
    skip_unless_available("llama-cpp")
    file = gguf_of(folder_for_gguf(tmp_path / "hf"), tmp_path / "m.gguf", "Q8_0")
    done = invoke("compare", file, "--generate", "9:6", "--on", "llama-cpp,llama-cpp:prefix=kept,torch", *SHORT)
    assert done.exit_code == 0, done.output
    rows = {row["contestant"]: row for row in json.loads(done.stdout)["rows"]}
    for row in rows.values():
        assert row["outcome"] == "finished", row
        assert row["time_to_first_token_ns"]["value"] > 0
        assert row["time_per_output_token_ns"]["value"] > 0
        assert row["tokens_per_s"]["value"] > 0
        assert row["memory_bytes"]["key_value_cache"] > 0
    own = rows["llama-cpp"]
    assert own["route"] == "native"
    assert own["error_relative"] is None
    assert {"W_TOKENS_ALONE", "W_FILE_PRECISION"} <= {each["code"] for each in own["warnings"]}
    assert own["settings"]["threads"] == "1"


def test_a_race_of_openvino_genai_ranks_it_and_shows_how_it_was_proven(tmp_path: Path) -> None:
    skip_unless_available("openvino-genai")
    folder = generating_folder(tmp_path / "m", "gpt2")
    done = invoke("compare", f"hf:{folder}", "--generate", "9:6", "--on", "openvino-genai,torch", *SHORT)
    assert done.exit_code == 0, done.output
    rows = {row["contestant"]: row for row in json.loads(done.stdout)["rows"]}
    own = rows["openvino-genai"]
    assert [row["outcome"] for row in rows.values()] == ["finished", "finished"], own
    assert own["time_to_first_token_ns"]["value"] > 0
    assert own["token_gap_p99_ns"]["value"] >= own["time_per_output_token_ns"]["value"] > 0
    assert own["memory_bytes"]["key_value_cache"] > 0
    assert own["error_relative"] is None
    assert "W_TOKENS_ALONE" in {each["code"] for each in own["warnings"]}


def test_a_cache_of_whole_prompts_disqualifies_llama_cpp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_unless_available("llama-cpp")
    install_runtimes(tmp_path / "installed", monkeypatch)
    file = gguf_of(folder_for_gguf(tmp_path / "hf", **LONG), tmp_path / "m.gguf")
    found = raced("keeps-prompts,llama-cpp", gguf_source(file, (448, 4)), 0.3)
    assert found["keeps-prompts"][:2] == ("disqualified", "E_KEPT_ANSWERS"), found
    assert found["llama-cpp"][0] == "finished", found
