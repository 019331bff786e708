"""Sizes of files without names for their dimensions are named by input and axis."""

from __future__ import annotations

import pytest
from fairlap.errors import FairlapError
from fairlap.models.sources.named_axes import with_sizes
from fairlap.request.fields.source import Source

DECLARED = {"ids": (None, None), "mask": (None, None), "scale": (None, 4)}


def source_of(*dims: tuple[str, int], among_others: bool = False) -> Source:
    return Source("m.keras", "/m.keras", dims=dims, among_others=among_others)


def test_axes_that_are_joined_get_one_size() -> None:
    found = with_sizes(DECLARED, source_of(("ids:1+mask:1", 37), ("scale:0", 2), ("scale:1", 4)))
    assert found == {"ids": (None, 37), "mask": (None, 37), "scale": (2, 4)}
    assert with_sizes(DECLARED, source_of()) == DECLARED


@pytest.mark.parametrize("name", ["sequence", "ids", "ids:2", "words:1", "ids:1+mask", "ids:1+", "scale:1", "ids:-1"])
def test_an_axis_that_a_model_lacks_or_fixes_is_refused(name: str) -> None:
    with pytest.raises(FairlapError) as refused:
        with_sizes(DECLARED, source_of((name, 37)))
    assert refused.value.code == "E_MODEL_DIMENSIONS"


def test_names_of_other_models_of_a_request_are_left_to_them() -> None:
    assert with_sizes(DECLARED, source_of(("sequence", 37), among_others=True)) == DECLARED
