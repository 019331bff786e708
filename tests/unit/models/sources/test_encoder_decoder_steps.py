"""An encoder-decoder step by step: the tokens of transformers' own ``generate``, and the logits of all steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fairlap.models.sources.python_models.hugging_face_models import LocalModel, module_of
from machine_marks import needs
from own_generators import generated_by_transformers, generating_folder, generating_source

pytestmark = pytest.mark.usefixtures("offline")

needs("torch", "transformers")

PROMPT, TOKENS, BATCH = 9, 6, 2


def steps_of(path: Path, name: str, **changes: Any) -> Any:
    from fairlap.models.sources.python_models.generating.encoder_decoder_steps import EncoderDecoderSteps

    source = generating_source(generating_folder(path, name, **changes), (PROMPT, TOKENS))
    return EncoderDecoderSteps(module_of(LocalModel(source), with_weights=True)[0], PROMPT, TOKENS)


def drawn() -> Any:
    import torch

    return torch.randint(0, 40, (BATCH, PROMPT), generator=torch.Generator().manual_seed(11))


def greedy(steps: Any, prompt: Any, *, fixed: bool) -> tuple[Any, Any, Any]:
    """Tokens, logits, and the state after the last."""
    import torch

    chosen, logits, state = (steps.first_of_fixed_shape if fixed else steps.first)(prompt)
    tokens, found = [chosen], [logits]
    for _ in range(TOKENS - 1):
        chosen, logits = steps.following_of_fixed_shape(state, chosen[:, None], None)
        tokens.append(chosen)
        found.append(logits)
    return torch.stack(tokens, dim=1), torch.stack(found, dim=1), state


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t5", *(pytest.param(each, marks=pytest.mark.slow) for each in ("bart", "marian"))])
def test_tokens_are_those_of_generate_through_both_kinds_of_cache(tmp_path: Path, name: str) -> None:
    import torch

    steps, prompt = steps_of(tmp_path / name, name), drawn()
    found = generated_by_transformers(steps.model, prompt, TOKENS)
    expected = torch.stack(found.logits, dim=1)
    assert not torch.allclose(expected[0], expected[1], atol=0.1), "the same for both prompts would prove nothing"
    assert not torch.allclose(expected[:, 1:], expected[:, :-1], atol=0.1), "the same in every step neither"
    with torch.no_grad():
        for fixed in (False, True, True):  # the second answer through the one cache of a fixed shape is as the first
            tokens, logits, state = greedy(steps, prompt, fixed=fixed)
            assert torch.equal(tokens, found.sequences[:, 1:])
            torch.testing.assert_close(logits, expected, rtol=1e-3, atol=1e-4)
            sizes = {tuple(each.shape) for each in steps.cache_arrays(state)}
            assert sizes == {(BATCH, 2, PROMPT, 8), (BATCH, 2, TOKENS, 8)}


@pytest.mark.parametrize("changes", [{"num_decoder_layers": 1}, {"num_decoder_layers": 3}])
def test_a_decoder_may_have_other_layers_than_its_encoder(tmp_path: Path, changes: dict[str, Any]) -> None:
    import torch

    steps, prompt = steps_of(tmp_path / "m", "t5", **changes), drawn()
    with torch.no_grad():
        for fixed in (False, True):
            tokens, logits, state = greedy(steps, prompt, fixed=fixed)
            at_once = steps.model(**steps.at_once(prompt, tokens[:, :-1])).logits
            torch.testing.assert_close(logits, at_once, rtol=1e-3, atol=1e-4)
            assert len(steps.cache_arrays(state)) == 4 * changes["num_decoder_layers"]
