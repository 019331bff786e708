"""Conversions that go wrong in the ways that converters do are seen; right ones in float32 are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from fairlap.models.arrays import Arrays, hash_of
from fairlap.models.checks.fp8_answers import InFp8
from fairlap.models.draw import rounded_to, rounded_to_bfloat16
from fairlap.race.equal_work import answers
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.materials import Materials
from fairlap.request.work import PRECISIONS_OF_MODELS, Precision
from machine_marks import needs
from onnx_files import answers_by_hand, masked_lookup, materials_of, source_of

needs("onnx")


@pytest.fixture(scope="module")
def materials(tmp_path_factory: pytest.TempPathFactory) -> Materials:
    folder = tmp_path_factory.mktemp("wrong")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLAP_CACHE", str(folder / "cache"))
        return materials_of(source_of(masked_lookup(folder / "m.onnx"), "batch=4,sequence=32"), folder)


def checked(materials: Materials, answer: np.ndarray) -> None:
    errors = answers.array_errors(materials, {"logits": answer.astype(np.float32)}, "inputs", "before")
    answers.require_right_on(materials, {"logits": answer}, "inputs", errors, {}, "a call")


Wrong = Callable[[Arrays, np.ndarray, np.ndarray], np.ndarray]


def _rounded(weights: Arrays, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return answers_by_hand({name: rounded_to_bfloat16(array) for name, array in weights.items()}, ids, mask)


def _in_tf32(weights: Arrays, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
    cut = {name: (array.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for name, array in weights.items()}
    return answers_by_hand(cut, ids, mask)


def _changed_by_hand(weights: Arrays, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
    folded = {**weights, "hidden.bias": weights["hidden.bias"] * np.float32(1.001)}
    return answers_by_hand(folded, ids, mask)


WRONG: dict[str, Wrong] = {
    "an ignored mask": lambda weights, ids, mask: answers_by_hand(weights, ids, np.ones_like(mask)),
    "clamped ids": lambda weights, ids, mask: answers_by_hand(weights, np.minimum(ids, 40), mask),
    "a transposed weight": lambda weights, ids, mask: answers_by_hand(
        {**weights, "hidden.weight": weights["hidden.weight"].T}, ids, mask
    ),
    "another order of the axes": lambda weights, ids, mask: (
        answers_by_hand(weights, ids, mask).swapaxes(0, 1).reshape(4, 32, 4)
    ),
    "bfloat16": _rounded,
    "TF32": _in_tf32,
    "a constant that was changed by hand": _changed_by_hand,
}


@pytest.mark.parametrize("how", WRONG)
def test_a_wrong_conversion_is_disqualified(materials: Materials, how: str) -> None:
    inputs = materials.workload("inputs").inputs
    with pytest.raises(OtherWork) as wrong:
        checked(materials, WRONG[how](materials.weights, inputs["ids"], inputs["mask"]))
    assert wrong.value.code == "E_OUTPUT"


def test_float32_is_right_with_room_to_spare(materials: Materials) -> None:
    inputs = materials.workload("inputs").inputs
    answer = answers_by_hand(materials.weights, inputs["ids"], inputs["mask"].astype(np.float32))
    assert answer.dtype == np.float32
    checked(materials, answer)
    expected = materials.reference("inputs")["logits"]
    assert np.abs(answer - expected).max() < materials.tolerance("logits").absolute / 5


CHANGES_MUCH = ("an ignored mask", "clamped ids", "a transposed weight", "another order of the axes")


@pytest.mark.slow_but("fp8", "bf16")
@pytest.mark.parametrize("precision", PRECISIONS_OF_MODELS)
@pytest.mark.parametrize("how", CHANGES_MUCH)
def test_a_lower_precision_hides_no_wrong_conversion(materials: Materials, how: str, precision: Precision) -> None:
    lower = in_precision(materials, precision)
    inputs = lower.workload("inputs").inputs
    with pytest.raises(OtherWork) as wrong:
        checked(lower, WRONG[how](lower.weights, inputs["ids"], inputs["mask"]))
    assert wrong.value.code == "E_OUTPUT"


@pytest.mark.parametrize("precision", ["fp16", "bf16", "int8", "fp8"])
def test_rounded_weights_are_right_in_their_precision_and_wrong_in_float32(
    materials: Materials, precision: Precision
) -> None:
    lower = in_precision(materials, precision)
    inputs = lower.workload("inputs").inputs
    answer = answers_by_hand(rounded_weights(materials.weights, precision), inputs["ids"], inputs["mask"])
    checked(lower, answer)
    with pytest.raises(OtherWork):
        checked(materials, answer)


def test_a_layer_that_is_dropped_is_not_a_quantization(materials: Materials) -> None:
    lower = in_precision(materials, "int8")
    inputs, weights = lower.workload("inputs").inputs, lower.weights
    masked = weights["table"][inputs["ids"]] * inputs["mask"][..., None]
    with pytest.raises(OtherWork) as wrong:
        checked(lower, masked[..., : weights["out.weight"].shape[0]] @ weights["out.weight"][: masked.shape[-1]])
    assert wrong.value.code == "E_OUTPUT"


def in_precision(materials: Materials, precision: Precision) -> Materials:
    assert materials.work.source is not None
    return materials_of(materials.work.source, materials.folder.parent, precision)


def rounded_weights(weights: Arrays, precision: Precision) -> Arrays:
    if precision == "fp8":
        return dict(InFp8(weights, 1.0))
    if precision != "int8":
        return {name: rounded_to(precision, array) for name, array in weights.items()}
    steps = {name: np.abs(array).max() / 127 for name, array in weights.items()}
    return {name: (np.round(array / steps[name]) * steps[name]).astype(np.float32) for name, array in weights.items()}


def test_the_answer_to_other_inputs_is_a_kept_one(materials: Materials) -> None:
    inputs = materials.workload("changed").inputs
    with pytest.raises(OtherWork) as wrong:
        checked(materials, answers_by_hand(materials.weights, inputs["ids"], inputs["mask"].astype(np.float32)))
    assert wrong.value.code == "E_STALE_ANSWER"


def test_weights_that_a_conversion_changed_have_another_hash(materials: Materials) -> None:
    changed = dict(materials.weights) | {"out.weight": materials.weights["out.weight"] * np.float32(1.0001)}
    answers.require_weights(materials, hash_of(materials.weights))
    with pytest.raises(OtherWork) as wrong:
        answers.require_weights(materials, hash_of(changed))
    assert wrong.value.code == "E_WEIGHTS"
