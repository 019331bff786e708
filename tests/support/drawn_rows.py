"""Rows of every shape, as hypothesis draws them: any text, any finite figure, anything absent that may be."""

from __future__ import annotations

from functools import cache
from typing import Any

from fairlap.results.row import Row
from hypothesis import strategies
from hypothesis.strategies import SearchStrategy
from msgspec import inspect

_FORMULAS = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "'quoted",
    "''",
    " =1",
    "\t=1",
    "＝1",
    "a\nb",
    "a\r\nb",
    '"',
    "a,b;c",
    "\0",
    "",
]
_AWKWARD = ["a\nb", "a\r\nb", "\r", '"', "a,b;c", "\0", ""]
texts = strategies.text() | strategies.sampled_from(_FORMULAS + _AWKWARD)  # lone surrogates are no text in UTF-8
wholes = strategies.integers(-(2**63), 2**63 - 1)
numbers = strategies.floats(allow_nan=False, allow_infinity=False)


@strategies.composite
def rows(draw: strategies.DrawFn) -> Row:
    values = {name: draw(strategy) for name, strategy in _fields().items()}
    absent = {name: draw(texts) for name, value in values.items() if value is None}
    return Row(**values, absent=absent)


@cache
def _fields() -> dict[str, SearchStrategy[Any]]:
    """Built once, since that takes longer than drawing from them."""
    described = inspect.type_info(Row)
    assert isinstance(described, inspect.StructType)
    found = {}
    for field in described.fields:
        assert isinstance(field.type, inspect.Metadata)
        if field.name != "absent":
            found[field.name] = _of(field.type.type)
    return found


def _of(kind: inspect.Type) -> SearchStrategy[Any]:
    match kind:
        case inspect.UnionType():
            return strategies.one_of([_of(each) for each in kind.types])
        case inspect.NoneType():
            return strategies.none()
        case inspect.StrType():
            return texts
        case inspect.IntType():
            return wholes
        case inspect.FloatType():
            return numbers
        case inspect.LiteralType():
            return strategies.sampled_from(kind.values)
        case inspect.DictType():
            return strategies.dictionaries(_of(kind.key_type), _of(kind.value_type), max_size=3)
        case inspect.ListType():
            return strategies.lists(_of(kind.item_type), max_size=3)
        case inspect.StructType() | inspect.DataclassType():
            types = {
                field.encode_name: getattr(field.type, "type", field.type) for field in kind.fields
            }  # or described
            return strategies.builds(kind.cls, **{name: _of(each) for name, each in types.items()})
    raise NotImplementedError(f"no rows are drawn for a field of {kind}")
