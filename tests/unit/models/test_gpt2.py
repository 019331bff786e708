"""GPT-2's two halves agree with each other, no token sees a later one, and every weight shows in the answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.bench_models.gpt2.reference import every_logit, extend, nothing_read
from fairlap.bench_models.gpt2.weights import Size, cache_names, weights_of
from fairlap.models.arrays import Arrays
from fairlap.models.checks.answer_check import output_errors
from fairlap.models.draw import draw_weights
from fairlap.models.registry import find
from fairlap.models.spec import TOLERANCES, Spec

TINY = Size(layers=3, heads=2, width=16, context=12, vocabulary=40)
BATCH, TOKENS = 2, 9
Array = npt.NDArray[Any]


@pytest.fixture(scope="module")
def weights() -> dict[str, Array]:
    spec = Spec("tiny", "text generation", (), (), weights_of(TINY), 0, None, "nowhere")
    return {name: array.astype(np.float64) for name, array in draw_weights(spec, 0).items()}


@pytest.fixture(scope="module")
def input_ids() -> Array:
    return np.random.default_rng(0).integers(0, TINY.vocabulary, (BATCH, TOKENS))


def read(weights: Arrays, input_ids: Array) -> dict[str, Array]:
    return extend(weights, TINY, input_ids, nothing_read(TINY, input_ids))


def test_reading_all_tokens_is_reading_all_but_one_and_a_step_of_decoding(
    weights: dict[str, Array], input_ids: Array
) -> None:
    before = read(weights, input_ids[:, :-1])
    caches = [before[name] for name in cache_names(TINY)]
    step = extend(weights, TINY, input_ids[:, -1:], list(zip(caches[::2], caches[1::2], strict=True)))
    whole = read(weights, input_ids)
    assert step.keys() == whole.keys()
    for name, answer in whole.items():
        np.testing.assert_allclose(step[name], answer, rtol=1e-12, atol=1e-12)


def test_no_token_sees_a_later_one(weights: dict[str, Array], input_ids: Array) -> None:
    changed = input_ids.copy()
    changed[:, -1] = (changed[:, -1] + 1) % TINY.vocabulary
    one, other = read(weights, input_ids), read(weights, changed)
    for name in cache_names(TINY):
        np.testing.assert_array_equal(one[name][:, :, :-1], other[name][:, :, :-1])
        assert not np.allclose(one[name][:, :, -1], other[name][:, :, -1])


def test_the_order_of_earlier_tokens_shows(weights: dict[str, Array], input_ids: Array) -> None:
    swapped = input_ids[:, [1, 0, *range(2, TOKENS)]]
    assert not seems_right(read(weights, swapped), read(weights, input_ids))


def test_items_of_a_batch_do_not_see_each_other(weights: dict[str, Array], input_ids: Array) -> None:
    together, alone = read(weights, input_ids), read(weights, input_ids[1:])
    for name, answer in alone.items():
        np.testing.assert_allclose(answer, together[name][1:], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", [weight.name for weight in weights_of(TINY)])
def test_a_weight_out_of_place_is_visible_in_the_answer(name: str, weights: dict[str, Array], input_ids: Array) -> None:
    moved = {**weights, name: np.roll(weights[name], 1, axis=-1)}
    assert not seems_right(read(moved, input_ids), read(weights, input_ids))


@pytest.mark.parametrize("layer", range(TINY.layers))
@pytest.mark.parametrize("part", ["attn", "mlp"])
def test_a_part_left_out_shows_in_the_logits_beyond_every_tolerance(
    part: str, layer: int, weights: dict[str, Array], input_ids: Array
) -> None:
    without = {name: array * (f"h.{layer}.{part}.c_proj" not in name) for name, array in weights.items()}
    wrong, right = read(without, input_ids)["logits"], read(weights, input_ids)["logits"]
    tolerance = find("gpt2_prefill").spec.tolerances["bf16"]
    assert not output_errors("logits", wrong, right, tolerance).right


def test_the_logits_after_each_token_are_those_of_reading_up_to_it(weights: dict[str, Array], input_ids: Array) -> None:
    every = every_logit(weights, TINY, input_ids)
    for token in range(TOKENS):
        np.testing.assert_allclose(
            every[:, token], read(weights, input_ids[:, : token + 1])["logits"], rtol=1e-12, atol=1e-12
        )


def seems_right(answers: dict[str, Array], reference: dict[str, Array]) -> bool:
    return all(output_errors(name, answers[name], reference[name], TOLERANCES["fp32"]).right for name in reference)
