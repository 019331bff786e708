"""A library of custom operators is code: it is found, made absolute, and refused without trust before it is loaded."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from fairlap.errors import InvalidRequest
from fairlap.race.planning.custom_libraries import first_library, with_libraries_found
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.planning.plan_reach import reach_of
from fairlap.request.fields.source import Source
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import Work
from small_races import small_plan

NAME = "onnxruntime:custom_ops=./ops.so"


@pytest.fixture(autouse=True)
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write one that no loader would take: nothing here may load it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ops.so").write_bytes(b"no library")
    return tmp_path / "ops.so"


def test_it_is_refused_without_trust_before_the_model_is_read() -> None:
    with pytest.raises(InvalidRequest) as caught:
        plan_of(RaceRequest(models=("nowhere.onnx",), contestants=Contestants(NAME)), available_cores=(0,))
    assert caught.value.code == "E_SOURCE_TRUST"
    assert "--trust" in str(caught.value)


def test_one_that_is_not_here_is_named() -> None:
    with pytest.raises(InvalidRequest) as caught:
        with_libraries_found(Contestants("onnxruntime:custom_ops=./none.so"), trust=True)
    assert caught.value.code == "E_CONTESTANT"
    assert "./none.so" in str(caught.value)


def test_a_path_is_absolute_afterwards_and_the_first_one_opens_the_model(library: Path) -> None:
    names = with_libraries_found(Contestants(f"torch,onnxruntime,{NAME}"), trust=True)
    assert [dict(name.options) for name in names] == [{}, {}, {"custom_ops": str(library)}]
    assert names[2].text == NAME
    assert first_library(names) == str(library)
    assert first_library(names[:2]) == ""


def test_a_built_in_model_has_no_custom_operators() -> None:
    with pytest.raises(InvalidRequest) as caught:
        plan_of(RaceRequest(models=("mlp",), contestants=Contestants(NAME), trust=True), available_cores=(0,))
    assert caught.value.code in ("E_CONTESTANT", "E_SHAPES")


def test_a_plan_from_elsewhere_lists_it_among_what_it_reaches(library: Path) -> None:
    plan = small_plan(f"onnxruntime:custom_ops={library}", Work("mlp", 1))
    assert any(str(library) in line for line in reach_of(plan))


def test_a_model_is_the_same_whichever_library_opened_it() -> None:
    source = Source("m.onnx", "/m.onnx", files=(("/m.onnx", "0" * 64),))
    opened = [msgspec.structs.replace(source, custom_ops=path) for path in ("", "/old.so", "/new.so")]
    assert len({Work("m", 1, source=each).id for each in opened}) == 1
