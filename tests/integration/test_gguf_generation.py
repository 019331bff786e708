"""GGUF files answer token by token as transformers does with the same weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import invoke, refusal
from fairlap.models.array_files import safetensors
from fairlap.models.sources.bundle import inputs_file, weights_file
from framework_python import skip_unless_available
from gguf_files import folder_for_gguf, gguf_of, gguf_source
from machine_marks import needs, needs_proc
from onnx_files import opened
from own_generators import GREEDY, OF_GREEDY, answers_of, generated_by_transformers

needs("torch", "transformers", "gguf", "onnxscript")

pytestmark = [needs_proc, pytest.mark.slow, pytest.mark.usefixtures("own_cache", "offline")]

PROMPT, TOKENS = 9, 6


def read_by_transformers(folder: Path, file: Path) -> Any:
    """Let transformers' own reader fill the model of the folder from the file."""
    from transformers import AutoModelForCausalLM
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    model = AutoModelForCausalLM.from_pretrained(folder)
    found = load_gguf_checkpoint(str(file), return_tensors=True, model_to_load=model)["tensors"]
    model.load_state_dict(found, strict=False)
    return model.eval()


@pytest.mark.parametrize(
    ("kind", "tied", "contestants"),
    [("F32", False, ("torch", "onnxruntime", "openvino")), ("F16", True, ("torch",)), ("Q8_0", False, ("torch",)),
     ("Q4_0", True, ("torch",))],
)  # fmt: skip
def test_tokens_are_those_of_generate_on_the_weights_that_transformers_reads(
    tmp_path: Path, kind: str, tied: bool, contestants: tuple[str, ...]
) -> None:
    import torch

    for contestant in contestants:
        skip_unless_available(contestant)
    made = folder_for_gguf(tmp_path / "hf", tie_word_embeddings=tied)
    file = gguf_of(made, tmp_path / "m.gguf", kind)
    folder, bundle = opened(gguf_source(file, (PROMPT, TOKENS)), tmp_path)
    model = read_by_transformers(made, file)
    own = safetensors.read(weights_file(folder))
    for name, tensor in model.named_parameters():
        np.testing.assert_array_equal(own[name], tensor.detach().numpy())
    prompt = torch.from_numpy(np.array(safetensors.read(inputs_file(folder, "inputs"))["input_ids"]))
    right = generated_by_transformers(model, prompt, TOKENS)
    tokens, logits = right.sequences[:, -TOKENS:].numpy(), torch.stack(right.logits, dim=1).numpy()
    assert len(np.unique(tokens)) > 2, "a constant answer would prove nothing"
    for contestant, found in answers_of(folder, tmp_path, *contestants).items():
        np.testing.assert_array_equal(found[GREEDY], tokens, err_msg=contestant)
        np.testing.assert_allclose(found[OF_GREEDY + "logits"], logits, rtol=1e-3, atol=2e-4)
    assert ("W_FILE_PRECISION" in [notice.code for notice in bundle.notices]) == (kind != "F32")


def test_the_file_of_a_folder_has_the_tokens_of_the_folder_with_the_factors_of_llama_3(tmp_path: Path) -> None:
    """Its converter writes by what it divides the frequencies of positions, and nothing of the formula."""
    import torch
    from transformers import AutoModelForCausalLM

    rope = {
        "rope_type": "llama3",
        "rope_theta": 10000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
    }
    made = folder_for_gguf(tmp_path / "hf", rope_parameters=rope)
    model = AutoModelForCausalLM.from_pretrained(made)
    plain = 10000.0 ** (-np.arange(0, 32, 2) / 32)
    factors = (plain / model.model.rotary_emb.inv_freq.numpy()).astype(np.float32)
    assert factors.max() > 2
    file = gguf_of(made, tmp_path / "m.gguf", rope_freqs__weight=factors)
    folder, _ = opened(gguf_source(file, (PROMPT, TOKENS)), tmp_path)
    prompt = torch.from_numpy(np.array(safetensors.read(inputs_file(folder, "inputs"))["input_ids"]))
    right = generated_by_transformers(model, prompt, TOKENS)
    found = answers_of(folder, tmp_path, "torch")["torch"]
    np.testing.assert_array_equal(found[GREEDY], right.sequences[:, -TOKENS:].numpy())
    logits = torch.stack(right.logits, dim=1).numpy()
    np.testing.assert_allclose(found[OF_GREEDY + "logits"], logits, rtol=1e-3, atol=2e-4)


def test_a_race_on_a_file_shows_its_types_and_how_the_model_got_there(tmp_path: Path) -> None:
    file = gguf_of(folder_for_gguf(tmp_path / "hf"), tmp_path / "m.gguf", "Q4_0")
    short = ("--blocks", 1, "--seconds", 0.05, "--threads", 1, "--no-store", "--json")
    done = invoke("compare", file, "--generate", "9:6", "--on", "torch,jax", *short)
    assert done.exit_code == 0, done.output
    rows = {row["contestant"]: row for row in json.loads(done.stdout)["rows"]}
    assert rows["jax"]["code"] == "E_UNSUPPORTED"
    assert rows["torch"]["outcome"] == "finished", rows["torch"]
    assert rows["torch"]["route"] not in ("", "native")
    assert rows["torch"]["time_to_first_token_ns"]["value"] > 0
    [warning] = [each for each in rows["torch"]["warnings"] if each["code"] == "W_FILE_PRECISION"]
    assert "Q4_0" in warning["text"]


def test_without_generate_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF" + bytes(64))
    assert refusal("compare", file, "--on", "torch", "--no-store", "--quiet").code == "E_SHAPES"
