"""``fairlap.compare`` of models: no field of a request is ignored."""

from __future__ import annotations

import ast
from pathlib import Path

import fairlap
import pytest
from fairlap.errors import InvalidRequest
from fairlap.request.load import LoadRequest
from fairlap.request.race_request import RaceRequest

_PACKAGE = Path(fairlap.__file__).parent
_REFUSED = {"require": "nonsense<3", "use": "edge", "output": ("race.html",)}


def _fields_read() -> set[str]:
    """What a race from Python reads of its request: here, and where its plan is drawn."""
    files = [_PACKAGE / "comparing.py", *(_PACKAGE / "race").glob("*.py")]
    return {
        node.attr
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "request"
    }


@pytest.mark.parametrize("field", RaceRequest.__struct_fields__)
def test_every_field_of_a_request_is_read_or_refused(field: str) -> None:
    if field not in _REFUSED:
        assert field in _fields_read()
        return
    with pytest.raises(InvalidRequest, match=field) as refused:
        fairlap.compare("mlp", on=["torch", "jax"], **{field: _REFUSED[field]})
    assert refused.value.code == "E_REQUEST"


@pytest.mark.parametrize("field", sorted(_REFUSED))
def test_load_refuses_them_too(field: str) -> None:
    assert field not in LoadRequest.__struct_fields__
    with pytest.raises(InvalidRequest, match=field):
        fairlap.load("mlp", on=["torch", "jax"], p99="20ms", **{field: _REFUSED[field]})
