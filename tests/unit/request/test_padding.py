"""A contestant's option says what sizes are padded to."""

from __future__ import annotations

import pytest
from command_line import refusal
from fairlap.errors import InvalidRequest
from fairlap.request.fields.sizes.padding import PaddedSize, Padding, Shapes, goes_to_one_size, padding_in
from fairlap.request.names import contestant_named


def padding_of(name: str) -> Padding | None:
    return padding_in(contestant_named(name).framework_options)


def test_sizes_go_up_to_the_next_multiple_or_bucket() -> None:
    multiple, buckets = padding_of("torch:compile:pad=64"), padding_of("jax:bucket=512+32+128")
    assert multiple is not None
    assert buckets is not None
    assert [multiple.up_from(size) for size in (1, 64, 65, 300)] == [64, 64, 128, 320]
    assert [buckets.up_from(size) for size in (1, 32, 33, 512, 513)] == [32, 32, 128, 512, None]
    assert padding_of("torch:compile") is None


@pytest.mark.parametrize("options", ["pad=0", "pad=sixty", "pad=-8", "bucket=32+", "bucket=0", "pad=8:bucket=8"])
def test_what_is_no_size_is_refused(options: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        padding_of(f"torch:{options}")
    assert refused.value.code == "E_CONTESTANT"


def test_one_padded_size_is_known_as_such() -> None:
    small: Shapes = {"ids": (1, 8)}
    large: Shapes = {"ids": (1, 16)}
    assert goes_to_one_size((PaddedSize(small, large, {}), PaddedSize(large, large, {})))
    assert not goes_to_one_size((PaddedSize(small, small, {}), PaddedSize(large, large, {})))
    assert not goes_to_one_size(())


def test_what_pads_nothing_is_refused() -> None:
    refused = refusal("compare", "convnet", "--on", "torch:pad=16", "--no-store", "--quiet")
    assert refused.code == "E_PADDING"
    assert "torch:pad=16" in str(refused)
