"""Final answers are compared as far as they can be, and functions that make unequal work are refused by name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import photo_classifier
import pytest
from fairlap.models.array_files import safetensors
from fairlap.request.fields.data.stages import Stages
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.scenarios.file_to_answer.answer_values import (
    as_arrays,
    expected_answer,
    from_arrays,
    same,
    value_of,
    why_wrong,
)
from fairlap.scenarios.file_to_answer.render.shown import FilesShown
from fairlap.scenarios.file_to_answer.results.column_definitions import StageTime
from fairlap.scenarios.file_to_answer.stage_functions import InputForm, StageFailed, StageFunctions
from fairlap.scenarios.file_to_answer.stage_messages import AnswersFound, StageFound
from fairlap.scenarios.file_to_answer.stage_process import Order, answer_file, carry_out, inputs_file, outputs_file

FORM = InputForm("image", (1, 3, 8, 8), "float32")


@dataclass
class Box:
    left: float
    label: str


ANSWERS: list[Any] = [
    7,
    "cat",
    None,
    [("cat", 0.25), ("dog", 0.5)],
    {"boxes": np.array([[1.5, 2.0]]), "classes": np.array([3])},
    np.arange(1000),
    np.array(["a", "~b"]),
    np.float32(0.5),
    [Box(1.0, "cat")],
    {1, 2},
    b"bytes",
    [],
]


@pytest.mark.parametrize("answer", ANSWERS, ids=repr)
def test_an_answer_equals_itself_after_a_file_and_no_other_one(answer: Any, tmp_path: Path) -> None:
    value = value_of(answer)
    safetensors.write(tmp_path / "answer", as_arrays(value))
    again = from_arrays(safetensors.read(tmp_path / "answer"))
    assert same(value, again)
    assert value.unknown == ()
    assert why_wrong(again, expected_answer(value, [value])) == ""
    others = [value_of(other) for other in ANSWERS if other is not answer]
    assert all(why_wrong(other, expected_answer(value, [value])) for other in others)


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ([1, 2], [2, 1]),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.arange(100), np.arange(100)[::-1]),
        ({"a": 1.0}, {"b": 1.0}),
        ([0.1, 0.2], [0.1, 0.3]),
        (1.0, float("nan")),
        (1, 1.0),
        ("1", 1),
    ],
)
def test_answers_that_differ_are_wrong(first: Any, other: Any) -> None:
    assert why_wrong(value_of(other), expected_answer(value_of(first), [value_of(first)]))


def test_numbers_may_be_off_by_what_the_outputs_may_be_off_by() -> None:
    expected = expected_answer(value_of([0.5, 2.0]), [value_of([0.5 + 1e-4, 2.0]), value_of([0.5 - 1e-4, 2.0])])
    assert not expected.on_edge
    assert why_wrong(value_of([0.5002, 2.0]), expected) == ""
    assert why_wrong(value_of([0.501, 2.0]), expected)
    assert why_wrong(value_of([0.5, 2.001]), expected)
    assert why_wrong(value_of([float("nan"), 2.0]), expected)


def test_a_choice_that_rounding_decides_is_not_held_against_a_contestant() -> None:
    for moved in (value_of(4), None):
        expected = expected_answer(value_of(3), [value_of(3), moved])
        assert expected.on_edge
        assert why_wrong(value_of(4), expected) == ""


def test_what_cannot_be_compared_is_named_by_its_type() -> None:
    assert value_of([object(), (each for each in [1])]).unknown == ("object", "generator")
    endless: list[Any] = []
    endless.append(endless)
    assert value_of(endless).unknown == ("list",)


def test_stages_of_one_process_have_the_model_among_them() -> None:
    found = AnswersFound(5e6, (StageFound("decode", 3e6), StageFound("model", 2e6)), 40, 300.0)
    assert found.model_ns == 2e6
    assert found.per_s == pytest.approx(200.0)
    assert AnswersFound().model_ns is None
    assert AnswersFound().per_s is None


def test_the_difference_of_the_models_stands_beside_that_of_the_whole() -> None:
    def row(name: str, whole_ns: float, model_ns: float) -> Any:
        stages = [StageTime("decode", Estimate(whole_ns - model_ns), 0.5), StageTime("model", Estimate(model_ns), 0.5)]
        rates = {"file_answers_per_s": Estimate(1e9 / whole_ns), "file_overlapped_per_s": Estimate(2e9 / whole_ns)}
        figures = {"judged": Estimate(whole_ns), "file_model_ns": Estimate(model_ns), "file_stages": stages}
        return SimpleNamespace(contestant=name, **figures, **rates)

    rows = [row("torch", 12e6, 9e6), row("onnxruntime", 6e6, 3e6)]
    _, beside = FilesShown().notes(rows)
    assert beside.endswith("torch 2 and 3.")
    stages, rates = FilesShown().lines(rows[1])
    assert "decode 3.000 ms" in stages
    assert rates.endswith("(2 times)")
    assert len(FilesShown().notes(rows[:1])) == 1
    assert FilesShown().notes([SimpleNamespace(file_stages=[])]) == []  # type: ignore[list-item]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Two files, and the code of a user, which is imported from no other test's folder."""
    photo_classifier.code(tmp_path)
    photo_classifier.arrays(tmp_path / "items", 2, size=8)
    yield tmp_path
    sys.modules.pop(photo_classifier.NAME, None)
    sys.path.remove(str(tmp_path))


def order(place: Path, before: list[str], after: list[str], step: Any = "before", moved: int = 0) -> Order:
    before, after = ([f"{photo_classifier.NAME}:{name}" for name in names] for names in (before, after))
    stages = Stages(str(place / "items"), ("0.npy", "1.npy"), tuple(before), tuple(after), str(place))
    return Order(stages, (FORM,), str(place), step, moved)


def test_the_inputs_of_every_file_are_those_of_the_functions(place: Path) -> None:
    carry_out(order(place, ["load"], []))
    for item in (0, 1):
        found = safetensors.read(inputs_file(place, item))
        np.testing.assert_array_equal(found["image"], np.load(place / "items" / f"{item}.npy"))


@pytest.mark.parametrize(
    ("before", "named"),
    [
        (["load", "noisy"], "noisy"),
        (["load", "counting"], "counting"),
        (["load", "noisy", "pausing"], "noisy"),
        (["load", "too_small"], "too_small"),
        (["load", "in_float64"], "float64"),
        (["load", "by_another_name"], "photo"),
        (["load", "no_such"], "no_such"),
        (["decode"], "decode"),
    ],
)
def test_functions_that_make_other_work_or_none_are_named(place: Path, before: list[str], named: str) -> None:
    """A decoder finds no photo in an array's file."""
    with pytest.raises(StageFailed) as refused:
        carry_out(order(place, before, []))
    assert refused.value.code == "E_STAGE"
    assert named in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_answers_follow_from_outputs_and_from_moved_ones(place: Path) -> None:
    for item, moved in ((0, 0), (0, 1), (1, 0), (1, 1)):
        scores = np.eye(10, dtype=np.float32)[[3 + item + moved]]
        safetensors.write(outputs_file(place, item, moved), {"scores": scores})
    carry_out(order(place, ["load"], ["best"], "after", 1))
    found = {
        (item, moved): from_arrays(safetensors.read(answer_file(place, item, moved))).text
        for item in (0, 1)
        for moved in (0, 1)
    }
    assert found == {(0, 0): "3", (0, 1): "4", (1, 0): "4", (1, 1): "5"}


@pytest.mark.parametrize(("after", "named"), [(["halving"], "halving"), (["scores_of", "sorting"], "sorting")])
def test_a_function_that_writes_to_the_outputs_it_looks_at_is_named(place: Path, after: list[str], named: str) -> None:
    """Also through a part of them that another function returned; before the race and in a contestant alike."""
    scores = np.arange(10, dtype=np.float32)[None, ::-1].copy()
    safetensors.write(outputs_file(place, 0, 0), {"scores": scores})
    functions = StageFunctions(order(place, ["load"], after).stages)
    for call in (
        lambda: carry_out(order(place, ["load"], after, "after")),
        lambda: functions.answer_of({"scores": scores}, "0.npy"),
    ):
        with pytest.raises(StageFailed, match=named) as refused:
            call()
        assert refused.value.code == "E_STAGE"
        assert "scores" in str(refused.value)


def test_a_function_may_write_to_what_it_made_itself(place: Path) -> None:
    scores = np.arange(10, dtype=np.float32)[None, ::-1].copy()
    functions = StageFunctions(order(place, ["load"], ["doubled", "sorting"]).stages)
    assert functions.answer_of({"scores": scores}, "0.npy") == 18


@pytest.mark.parametrize("after", ["raising", "drawn"])
def test_a_function_after_the_model_that_raises_or_draws_is_named(place: Path, after: str) -> None:
    safetensors.write(outputs_file(place, 0, 0), {"scores": np.zeros((1, 10), np.float32)})
    with pytest.raises(StageFailed, match=after) as refused:
        carry_out(order(place, ["load"], [after], "after"))
    assert "0.npy" in str(refused.value)
