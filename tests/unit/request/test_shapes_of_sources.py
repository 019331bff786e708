"""Shapes, dimensions and ranges are read as the tools of the field write them."""

from __future__ import annotations

import pytest
from fairlap.errors import InvalidRequest
from fairlap.request.source import Source, dims_in, range_in, shapes_in


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("ids:8x128,mask:[8,128]", (("ids", (8, 128)), ("mask", (8, 128)))),
        ("data[1,3,224,224]", (("data", (1, 3, 224, 224)),)),
        ("x=3", (("x", (3,)),)),
        ("scalar:[]", (("scalar", ()),)),
        ("serving_default_x:0:1x2", (("serving_default_x:0", (1, 2)),)),
        ("", ()),
    ],
)
def test_shapes(text: str, shapes: tuple[tuple[str, tuple[int, ...]], ...]) -> None:
    assert shapes_in(text) == shapes


def test_dims_and_ranges() -> None:
    assert dims_in("batch=8, sequence:128") == (("batch", 8), ("sequence", 128))
    assert range_in("ids:0..30521") == ("ids", 0, 30521)
    assert range_in("offset=-3..4") == ("offset", -3, 4)
    assert range_in("pixels:-0.5..2e2") == ("pixels", -0.5, 200.0)


@pytest.mark.parametrize("text", ["ids", "ids:", "ids:8x", "ids:0x3", "ids:8x128,ids:8x128", "x:99999999999", "a:-1"])
def test_what_is_no_shape_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        shapes_in(text)
    assert refused.value.code == "E_SHAPES"


@pytest.mark.parametrize("text", ["batch", "batch=", "=8", "batch=0", "batch=-1", "batch=8,batch=9", "batch=1.5"])
def test_what_is_no_dimension_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        dims_in(text)
    assert refused.value.code == "E_SHAPES"


@pytest.mark.parametrize("text", ["ids", "ids:5", "ids:5..3", "ids:a..b", ":0..3"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        range_in(text)
    assert refused.value.code == "E_SHAPES"


def test_works_of_one_file_have_names_of_their_own() -> None:
    plain = Source("m.onnx", "/m.onnx")
    bound = [
        Source("m.onnx", "/m.onnx", shapes=shapes_in("x:2x3")),
        Source("m.onnx", "/m.onnx", shapes=shapes_in("x:4x3")),
        Source("m.onnx", "/m.onnx", dims=dims_in("n=2")),
        Source("m.onnx", "/m.onnx", batch=2),
    ]
    assert plain.name == "m.onnx"
    assert len({each.name for each in (plain, *bound)}) == 5
