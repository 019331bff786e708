"""Rows as other libraries read them: the same values as in the CSV file, an absent one null, by Arrow's interface."""

from __future__ import annotations

import csv
import ctypes
import io
import math
import sys
from collections.abc import Callable
from typing import Any

import pytest
from fairlap.errors import NotAvailable
from fairlap.render.files import csv_file
from fairlap.results.flat_row import columns
from fairlap.results.results import results_of
from fairlap.results.row_sequence import Rows
from runs_for_rows import a_run, crashed

KIND = {column.name: column.kind for column in columns()}
Cells = list[dict[str, Any]]


def rows() -> Rows:
    """Make rows of which one lacks most values, and whose names a spreadsheet would take for formulas."""
    run = a_run(listed="torch,jax:fast,onnxruntime")
    for process in run.processes:
        if process.contestant == "onnxruntime":
            crashed(process)
    return results_of(run, "=monday").rows


def of_the_csv(shown: Rows) -> Cells:
    """Read the file with the standard library: texts, and numbers as what they are."""
    read = csv.DictReader(io.StringIO(csv_file.encode(shown, all_columns=True).decode()))
    return [{name: value_of(name, cell) for name, cell in line.items()} for line in read]


def value_of(name: str, cell: str) -> Any:
    if KIND[name] in ("text", "structure"):
        return cell.removeprefix("'") or None  # CSV cannot tell an empty text from an absent one
    return None if cell == "" else int(cell) if KIND[name] == "whole" else float(cell)


def by_pyarrow(shown: Rows) -> Cells:
    found: Cells = pytest.importorskip("pyarrow").table(shown).to_pylist()
    return found


def by_polars(shown: Rows) -> Cells:
    found: Cells = pytest.importorskip("polars").DataFrame(shown).to_dicts()
    return found


def by_duckdb(shown: Rows) -> Cells:
    found = pytest.importorskip("duckdb").sql("SELECT * FROM shown")
    return [dict(zip(found.columns, each, strict=True)) for each in found.fetchall()]


def by_pandas(shown: Rows) -> Cells:
    pandas = pytest.importorskip("pandas")
    lines: Cells = shown.to_pandas().to_dict("records")
    return [{name: None if pandas.isna(value) else value for name, value in line.items()} for line in lines]


def by_pandas_from_arrow(shown: Rows) -> Cells:
    pandas = pytest.importorskip("pandas", minversion="3.0")
    lines: Cells = pandas.DataFrame.from_arrow(shown).to_dict("records")
    return [{name: None if pandas.isna(value) else value for name, value in line.items()} for line in lines]


@pytest.mark.parametrize("read", [by_pyarrow, by_polars, by_duckdb, by_pandas, by_pandas_from_arrow])
def test_every_library_reads_the_values_of_the_csv_file(read: Callable[[Rows], Cells]) -> None:
    shown = rows()
    found, expected = read(shown), of_the_csv(shown)
    assert len(found) == len(expected) == 3
    for line, wanted in zip(found, expected, strict=True):
        assert list(line) == [column.name for column in columns()]
        assert {name: value or None if KIND[name] == "text" else value for name, value in line.items()} == wanted
    lost = next(line for line in found if line["contestant"] == "onnxruntime")
    assert (lost["latency_p50_ns"], lost["place"], lost["ratio_low"]) == (None, None, None)  # absent, never 0
    assert lost["code"] == "E_CRASH"
    assert {line["run"] for line in found} == {"=monday"}  # no apostrophe: nothing here takes it for a formula


def test_the_stream_is_a_capsule_with_the_name_that_the_interface_asks_for() -> None:
    pytest.importorskip("pyarrow")
    is_valid = ctypes.pythonapi.PyCapsule_IsValid
    is_valid.argtypes = (ctypes.py_object, ctypes.c_char_p)
    capsule = rows().__arrow_c_stream__()
    assert is_valid(capsule, b"arrow_array_stream") == 1
    assert is_valid(capsule, b"arrow_schema") == 0


def test_a_data_frame_has_numbers_of_the_types_of_the_columns() -> None:
    pytest.importorskip("pandas")
    frame = rows().to_pandas()
    assert (str(frame["batch"].dtype), str(frame["latency_p50_ns"].dtype)) == ("Int64", "float64")
    assert math.isclose(frame["latency_p50_ns"].min(), min(row.latency_p50_ns.value for row in rows()[:2]))  # type: ignore[union-attr]
    assert frame["latency_p50_ns"].isna().sum() == 1
    assert len(Rows(()).to_pandas()) == 0


def test_without_pyarrow_the_stream_is_refused_and_a_data_frame_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(NotAvailable, match=r"fairlap\[parquet\]") as refused:
        rows().__arrow_c_stream__()
    assert refused.value.code == "E_NOT_AVAILABLE"
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(NotAvailable, match="pandas"):
        rows().to_pandas()


def test_rows_are_a_sequence_that_no_reader_takes_for_a_list() -> None:
    shown = rows()
    first, second, third = shown
    assert (shown[0], shown[-1], len(shown)) == (first, third, 3)
    assert shown == [first, second, third]
    assert [first, second, third] == shown
    assert shown != [first]
    assert shown[1:] == [second, third]
    assert shown[:1] + shown[1:] == shown
    assert isinstance(shown[1:], Rows)
    assert (second in shown, shown.index(second), shown.count(second)) == (True, 1, 1)
    assert list(reversed(shown)) == [third, second, first]
    assert repr(shown).count("\n") == 0
    assert not isinstance(shown, list)
