"""Inputs and outputs of two exports are matched by name, else in their order by shape and type, in either layout."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.sources.exports.matching import Match, places, shapes_like

IMAGE = ("image", (2, 3, 8, 6), "float32")
IDS, MASK = ("ids", (2, 7), "int64"), ("mask", (2, 7), "int64")


def matched(first: list[tuple[str, tuple[int, ...], str]], other: list[tuple[str, tuple[int, ...], str]]) -> Match:
    return Match(places("inputs", first, other, "a.onnx", "b.tflite"), {})


def test_names_decide_whatever_the_order() -> None:
    found = matched([IDS, MASK], [MASK, IDS])
    assert {name: place.name for name, place in found.inputs.items()} == {"ids": "ids", "mask": "mask"}
    assert found.text == ""


def test_without_names_the_order_decides_among_equal_shapes() -> None:
    found = matched([IDS, MASK], [("args_0", (2, 7), "int32"), ("args_1", (2, 7), "int32")])
    assert [place.name for place in found.inputs.values()] == ["args_0", "args_1"]
    ids = np.array([[5] * 7] * 2)
    given = found.given({"ids": ids, "mask": ids + 1})
    assert given["args_0"].dtype == np.int32
    assert (int(given["args_0"][0, 0]), int(given["args_1"][0, 0])) == (5, 6)


def test_a_shape_that_only_one_has_is_found_at_any_place() -> None:
    found = matched([IDS, IMAGE], [("b", (2, 3, 8, 6), "float32"), ("a", (2, 7), "int64")])
    assert {name: place.name for name, place in found.inputs.items()} == {"ids": "a", "image": "b"}


def test_an_exact_fit_goes_before_one_that_is_turned() -> None:
    turned, same = ("turned", (2, 6, 3, 8), "float32"), ("same", (2, 3, 8, 6), "float32")
    last = ("last", (2, 8, 6, 3), "float32")
    found = matched([IMAGE, turned], [last, same])
    assert {name: place.name for name, place in found.inputs.items()} == {"image": "same", "turned": "last"}


@pytest.mark.parametrize("last_first", [True, False])
def test_an_image_is_turned_there_and_its_answer_back(*, last_first: bool) -> None:
    first, last = IMAGE, ("serving_image", (2, 8, 6, 3), "float32")
    if last_first:
        first, last = last, first
    place = matched([first], [last]).inputs[first[0]]
    array = np.random.default_rng(0).standard_normal(first[1])
    there = place.turned(array)
    assert there.shape == last[1]
    channels_first, channels_last = (there, array) if last_first else (array, there)
    assert channels_first[1, 2, 4, 5] == channels_last[1, 4, 5, 2]
    np.testing.assert_array_equal(place.turned_back(there), array)


@pytest.mark.parametrize(
    "other",
    [
        [],
        [IDS, MASK],
        [("ids", (2, 8), "int64")],
        [("ids", (2, 7), "float32")],
        [("x", (7, 2), "int64")],
    ],
)
def test_what_does_not_fit_is_refused(other: list[tuple[str, tuple[int, ...], str]]) -> None:
    with pytest.raises(FairlapError) as refused:
        matched([IDS], other)
    assert refused.value.code == "E_SOURCE"
    assert "b.tflite" in str(refused.value)


def test_values_that_a_narrower_type_cannot_hold_are_refused() -> None:
    place = matched([IDS], [("x", (2, 7), "int8")]).inputs["ids"]
    with pytest.raises(FairlapError) as refused:
        place.into(np.full((2, 7), 300))
    assert refused.value.code == "E_SOURCE_INPUTS"


def test_open_sizes_are_those_of_the_first_file_in_either_layout() -> None:
    like = [IMAGE, IDS]
    assert shapes_like({"image": (None, None, None, 3), "ids": (None, 7)}, like) == {
        "image": (2, 8, 6, 3),
        "ids": (2, 7),
    }
    assert shapes_like({"y": (None, 7), "x": (None, 3, 8, 6)}, like) == {"y": (2, 7), "x": (2, 3, 8, 6)}
    assert shapes_like({"x": (None, 9)}, like) == {}


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        (["call:2", "call:0", "call:1"], ["call:0", "call:1", "call:2"]),
        (["Identity_1", "Identity", "Identity_2"], ["Identity", "Identity_1", "Identity_2"]),
        (["serving_args_1:0", "serving_args_0:0", "serving_args_10:0"], None),
        (["note", "contour", "onset"], ["note", "contour", "onset"]),
        (["a_2", "b_1", "c_0"], ["a_2", "b_1", "c_0"]),
    ],
)
def test_numbers_in_names_say_their_order_and_nothing_else_does(listed: list[str], expected: list[str] | None) -> None:
    sizes: tuple[int, ...] = (1, 5)
    first, other = ([(name, sizes, "float32") for name in names] for names in (("x", "y", "z"), listed))
    found = matched(first, other)
    wanted = expected or ["serving_args_0:0", "serving_args_1:0", "serving_args_10:0"]
    assert [place.name for place in found.inputs.values()] == wanted
