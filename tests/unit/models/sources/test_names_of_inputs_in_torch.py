"""A module of an imported graph takes inputs whatever their names are."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

import pytest
from fairlap.models.sources.imported import torch_module


def doubled(_weights: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {"y": 2 * next(iter(inputs.values()))}


@pytest.mark.parametrize("name", ["x", "self", "lambda", "a b"])
def test_an_input_is_taken_by_its_place_or_its_name(name: str) -> None:
    torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
    module = torch_module(doubled, {}, [name], ["y"], doubled, {})
    value = torch.ones(2)
    by_place = list(signature(module.forward).parameters) == [name]
    found = module(value) if by_place else module(**{name: value})
    assert found[0].tolist() == [2.0, 2.0]
