"""``fairlap.compare`` of models: no field of a request is ignored."""

from __future__ import annotations

import ast
import csv
from functools import cache, partial
from pathlib import Path

import fairlap
import pytest
from fairlap.errors import InvalidRequest
from fairlap.request.race_request import RaceRequest

_PACKAGE = Path(fairlap.__file__).parent
_CHECKED_AS_OUTPUT = {"require", "use", "output", "price", "keep_weights", "trace", "remote"}


@cache
def _fields_read() -> set[str]:
    """Find what a race from Python reads of its request: here, where its plan is drawn, and in the scenarios."""
    scenarios = (_PACKAGE / "scenarios").glob("*/race/*.py")
    files = [_PACKAGE / "comparing.py", *(_PACKAGE / "race").rglob("*.py"), *scenarios]
    return {
        node.attr
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "request"
    }


@pytest.mark.parametrize("field", sorted({*RaceRequest.__struct_fields__} - _CHECKED_AS_OUTPUT))
def test_every_field_of_a_request_is_read(field: str) -> None:
    assert field in _fields_read()


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("require", "nonsense<3", "E_REQUIRE"),
        ("use", "nonsense", "E_USE"),
        ("output", ["race.nonsense"], "E_OUTPUT_FORMAT"),
        ("output", "/nowhere/race.csv", "E_FILE"),
        ("price", "nonsense", "E_PRICE"),
    ],
)
def test_what_a_report_of_the_race_could_not_honour_is_refused_before_it(field: str, value: object, code: str) -> None:
    for compare in (fairlap.compare, partial(fairlap.load, p99="20ms")):
        with pytest.raises(InvalidRequest) as refused:
            compare("mlp", on=["torch", "jax"], **{field: value})
        assert refused.value.code == code


@pytest.mark.sanitized
@pytest.mark.usefixtures("example")
def test_a_race_from_python_writes_its_files_and_judges_requirements(tmp_path: Path) -> None:
    found = fairlap.compare(
        "mlp", on="example", blocks=1, seconds=0.05, threads=1, require="latency<1h", output=tmp_path / "rows.csv"
    )
    assert found.decision is not None
    assert ([each.contestant for each in found.decision.judged], len(found.decision.requirements)) == (["example"], 1)
    assert [each["contestant"] for each in csv.DictReader((tmp_path / "rows.csv").open())] == ["example"]
