"""A language model of transformers is opened to answer token by token: what an answer takes, and its inputs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fairlap.models.array_files import safetensors
from fairlap.models.sources.bundle import inputs_file, reference_file, weights_file
from fairlap.models.sources.python_models.hugging_face_models import LocalModel, module_of
from fairlap.models.spec import Integers
from machine_marks import needs
from onnx_files import code_of, opened
from own_generators import generating_folder, generating_source

pytestmark = pytest.mark.usefixtures("own_cache", "offline")

needs("torch", "transformers")

PROMPT, TOKENS, BATCH = 7, 4, 2
LAYERS, WIDTH, VOCABULARY, CONTEXT = 2, 16, 40, 32


@pytest.mark.slow
def test_an_opened_model_has_the_tokens_the_work_and_the_weights_of_an_answer(tmp_path: Path) -> None:
    source = generating_source(generating_folder(tmp_path / "m", "gpt2"), (PROMPT, TOKENS), BATCH)
    folder, bundle = opened(source, tmp_path)
    spec = bundle.spec
    assert source.name == "hf:m[batch=2,generate=7:4]"
    assert [(each.name, each.shape, each.fill) for each in spec.inputs] == [
        ("input_ids", (BATCH, PROMPT), Integers(0, VOCABULARY)),
        ("continuation", (BATCH, TOKENS - 1), Integers(0, VOCABULARY)),
    ]
    assert spec.tokens_of_an_answer == TOKENS
    positions = PROMPT + TOKENS - 1
    products = 12 * LAYERS * WIDTH**2 * positions + WIDTH * VOCABULARY * TOKENS
    pairs = LAYERS * WIDTH * PROMPT**2 + 2 * LAYERS * WIDTH * sum(range(PROMPT + 1, positions + 1))
    assert spec.gmacs_per_item == pytest.approx((products + pairs) / 1e9)
    held = sum(array.size for array in safetensors.read(weights_file(folder)).values())
    assert spec.read_weights == TOKENS * (held - CONTEXT * WIDTH)
    reference = safetensors.read(reference_file(folder, "inputs"))
    np.testing.assert_array_equal(reference["logits"].max(axis=2), reference["chosen_logits"])


@pytest.mark.slow
def test_an_encoder_reads_its_weights_once_and_a_decoder_once_for_each_token(tmp_path: Path) -> None:
    _, bundle = opened(generating_source(generating_folder(tmp_path / "m", "t5"), (PROMPT, TOKENS), BATCH), tmp_path)
    spec = bundle.spec
    square, between, norm, head = WIDTH**2, 2 * WIDTH * 32, WIDTH, WIDTH * VOCABULARY
    encoder = LAYERS * (4 * square + between)  # four products of attention, two of the layers between
    of_prompt = LAYERS * 2 * square  # keys and values for the decoder
    decoder = LAYERS * (6 * square + between) + head
    pairs = PROMPT**2 + sum(range(1, TOKENS + 1)) + PROMPT * TOKENS
    products = (encoder + of_prompt) * PROMPT + decoder * TOKENS + 2 * LAYERS * WIDTH * pairs
    assert spec.gmacs_per_item == pytest.approx(products / 1e9)
    once = encoder + of_prompt + (2 * LAYERS + 1) * norm
    assert spec.read_weights == once + TOKENS * (decoder + (3 * LAYERS + 1) * norm)
    assert spec.tokens_of_an_answer == TOKENS


def test_a_decoder_begins_with_the_token_of_generation_config(tmp_path: Path) -> None:
    from fairlap.models.sources.python_models.generating.encoder_decoder_steps import start_token

    source = generating_source(generating_folder(tmp_path / "m", "t5"), (PROMPT, TOKENS))
    file = tmp_path / "m" / "generation_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "decoder_start_token_id": 7}))
    local = LocalModel(source)
    assert file in local.files(), "another token is other work"
    assert [start_token(module_of(local, with_weights=each)[0]) for each in (True, False)] == [7, 7]


@pytest.mark.slow
def test_the_reference_is_that_of_all_tokens_at_once_in_float64(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    path = generating_folder(tmp_path / "m", "llama")
    folder, _ = opened(generating_source(path, (PROMPT, TOKENS), BATCH), tmp_path)
    inputs = safetensors.read(inputs_file(folder, "inputs"))
    text = torch.from_numpy(np.concatenate([inputs["input_ids"], inputs["continuation"]], axis=1))
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float64)
    with torch.no_grad():
        by_hand = model(text).logits[:, PROMPT - 1 :].numpy()
    np.testing.assert_allclose(safetensors.read(reference_file(folder, "inputs"))["logits"], by_hand, atol=1e-5)


@pytest.mark.slow
def test_frequencies_of_positions_stay_in_float32(tmp_path: Path) -> None:
    import torch
    from fairlap.models.sources.python_models.generating.causal_steps import CausalSteps

    source = generating_source(generating_folder(tmp_path / "m", "llama"), (PROMPT, TOKENS))
    model, _ = module_of(LocalModel(source), with_weights=True)
    exact = model.model.rotary_emb.inv_freq.clone()
    steps = CausalSteps(model, PROMPT + TOKENS - 1).to(torch.bfloat16)
    assert {each.dtype for each in steps.parameters()} == {torch.bfloat16}
    assert torch.equal(model.model.rotary_emb.inv_freq, exact)


@pytest.mark.parametrize("sizes", [(CONTEXT, 2), (2, CONTEXT)])
def test_an_answer_that_leaves_the_context_is_refused(tmp_path: Path, sizes: tuple[int, int]) -> None:
    source = generating_source(generating_folder(tmp_path / "m", "gpt2"), sizes)
    assert code_of(source, tmp_path) == "E_SHAPES"
