"""BERT-base is the published one, and its reference is what PyTorch's own encoder computes.

The reference takes its sizes from the weights, so a narrow one with all twelve layers is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.bench_models.bert_base.reference import forward
from fairlap.bench_models.bert_base.spec import (
    EPSILON,
    HEADS,
    HIDDEN,
    INTERMEDIATE,
    LAYER_NAMES,
    LENGTH,
    POSITIONS,
    SPEC,
    VOCABULARY,
    macs_per_item,
)
from fairlap.models.checks.answer_check import output_errors
from fairlap.models.draw import draw_inputs, draw_weights
from fairlap.models.spec import Integers, Tensor

NARROW = {HIDDEN: 24, INTERMEDIATE: 48, VOCABULARY: 50, POSITIONS: 16, LENGTH: 10}
Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Bert:
    weights: Arrays
    inputs: Arrays
    answers: Arrays

    def answers_with(self, weights: Arrays | None = None, inputs: Arrays | None = None) -> Arrays:
        return forward({**self.weights, **(weights or {})}, {**self.inputs, **(inputs or {})})


@pytest.fixture(scope="module")
def bert() -> Bert:
    def narrow(tensor: Tensor) -> Tensor:
        fill = Integers(0, NARROW[VOCABULARY]) if tensor.name == "input_ids" else tensor.fill
        return replace(tensor, shape=("batch", NARROW[LENGTH]), fill=fill)

    shapes = {weight.name: tuple(NARROW.get(size, size) for size in weight.shape) for weight in SPEC.weights}
    weights = tuple(replace(weight, shape=shapes[weight.name]) for weight in SPEC.weights)
    spec = replace(SPEC, inputs=tuple(narrow(tensor) for tensor in SPEC.inputs), weights=weights)
    held = {name: array.astype(np.float64) for name, array in draw_weights(spec, 0).items()}
    inputs = draw_inputs(spec, 3, 0)
    return Bert(held, inputs, forward(held, inputs))


def test_the_shapes_multiply_to_the_published_gmacs() -> None:
    assert macs_per_item() / 1e9 == pytest.approx(SPEC.gmacs_per_item, rel=1e-3)


def test_the_reference_is_what_pytorch_s_own_encoder_computes(bert: Bert) -> None:
    torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
    held = {name: torch.tensor(array) for name, array in bert.weights.items()}
    inputs = {name: torch.tensor(array) for name, array in bert.inputs.items()}
    tables = [held[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")]
    places = torch.arange(NARROW[LENGTH])
    hidden = tables[0][inputs["input_ids"]] + tables[1][places] + tables[2][inputs["token_type_ids"]]
    width = hidden.shape[-1:]
    norm = (held["embeddings.LayerNorm.weight"], held["embeddings.LayerNorm.bias"])
    hidden = torch.nn.functional.layer_norm(hidden, width, *norm, EPSILON)
    for name in LAYER_NAMES:
        hidden = encoder_layer(torch, held, name)(hidden, src_key_padding_mask=inputs["attention_mask"] == 0)
    pooled = torch.tanh(hidden[:, 0] @ held["pooler.dense.weight"].T + held["pooler.dense.bias"])
    np.testing.assert_allclose(bert.answers["last_hidden_state"], hidden.detach().numpy(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(bert.answers["pooled"], pooled.detach().numpy(), rtol=1e-9, atol=1e-9)


def encoder_layer(torch: Any, held: dict[str, Any], name: str) -> Any:
    layer = torch.nn.TransformerEncoderLayer(
        NARROW[HIDDEN],
        HEADS,
        NARROW[INTERMEDIATE],
        dropout=0.0,
        activation="gelu",
        layer_norm_eps=EPSILON,
        batch_first=True,
        dtype=torch.float64,
    )
    ours = {
        "self_attn.out_proj": "attention.output.dense",
        "linear1": "intermediate.dense",
        "linear2": "output.dense",
        "norm1": "attention.output.LayerNorm",
        "norm2": "output.LayerNorm",
    }
    state = {
        f"{theirs}.{part}": held[f"{name}.{own}.{part}"] for theirs, own in ours.items() for part in ("weight", "bias")
    }
    for part in ("weight", "bias"):
        three = [held[f"{name}.attention.self.{kind}.{part}"] for kind in ("query", "key", "value")]
        state[f"self_attn.in_proj_{part}"] = torch.cat(three)
    layer.load_state_dict(state)
    return layer


def test_a_token_that_the_mask_hides_is_seen_by_itself_alone(bert: Bert) -> None:
    item, place = (int(found[0]) for found in np.nonzero(bert.inputs["attention_mask"][:, 1:] == 0))
    hidden = place + 1  # not the first, which is what the pooler looks at
    answer = bert.answers_with(inputs=other_token(bert, item, hidden))
    changed = np.abs(answer["last_hidden_state"] - bert.answers["last_hidden_state"]).max(axis=-1) > 0
    assert np.argwhere(changed).tolist() == [[item, hidden]]
    np.testing.assert_array_equal(answer["pooled"], bert.answers["pooled"])


def test_a_token_that_the_mask_shows_is_seen_by_all_of_its_item(bert: Bert) -> None:
    item, shown = (int(found[0]) for found in np.nonzero(bert.inputs["attention_mask"]))
    answer = bert.answers_with(inputs=other_token(bert, item, shown))
    changed = np.abs(answer["last_hidden_state"] - bert.answers["last_hidden_state"]).max(axis=-1) > 1e-4
    assert changed[item].all()
    assert changed.sum() == NARROW[LENGTH]


def test_a_weight_out_of_place_is_visible_in_the_answer_unless_it_is_a_key_s_bias(bert: Bert) -> None:
    tolerance = SPEC.tolerances["fp32"]
    untold = set()
    for name, array in bert.weights.items():
        wrong = bert.answers_with({name: np.roll(array, 1, axis=-1)})
        if all(output_errors(each, wrong[each], bert.answers[each], tolerance).right for each in wrong):
            untold.add(name)
    assert untold == {f"{name}.attention.self.key.bias" for name in LAYER_NAMES}


def other_token(bert: Bert, item: int, place: int) -> Arrays:
    ids = bert.inputs["input_ids"].copy()
    ids[item, place] = (ids[item, place] + 1) % NARROW[VOCABULARY]
    return {"input_ids": ids}
