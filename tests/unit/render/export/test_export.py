"""Whatever is in a row, a file of rows gives it back; what cannot be written or read says why."""

from __future__ import annotations

import csv
import io
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from drawn_rows import rows
from fairlap.errors import FairlapError, InvalidRequest, NotAvailable
from fairlap.render.export import FORMATS, encoded, format_of, read_rows, write_rows
from fairlap.render.export.csv_file import decode as csv_rows
from fairlap.render.export.csv_file import encode as as_csv
from fairlap.results.columns import columns, flat
from fairlap.results.row import Row
from fairlap.results.rows import rows_of_run
from hypothesis import HealthCheck, given, settings, strategies
from runs_for_rows import a_run

READ_BACK = ["csv", "json", "jsonl", "parquet"]


def decoder(name: str) -> Any:
    if name == "parquet":
        pytest.importorskip("pyarrow")
    from importlib import import_module

    module = {"jsonl": "json_lines_file"}.get(name, f"{name}_file")
    return import_module(f"fairlap.render.export.{module}").decode


def bits(value: Any) -> Iterator[Any]:
    """Every leaf, floats by their bits: -0.0 is not 0.0."""
    built = msgspec.to_builtins(value)
    if isinstance(built, dict):
        for key in sorted(built):
            yield key
            yield from bits(built[key])
    elif isinstance(built, list):
        yield len(built)
        for each in built:
            yield from bits(each)
    else:
        yield struct.pack("<d", built) if isinstance(built, float) else built


@pytest.mark.parametrize("name", READ_BACK)
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=strategies.lists(rows(), max_size=3))
def test_rows_are_read_back_to_the_last_bit(name: str, drawn: list[Row]) -> None:
    back = decoder(name)(encoded(drawn, name))
    assert back == drawn
    assert list(bits(back)) == list(bits(drawn))


@pytest.mark.parametrize("name", READ_BACK)
def test_a_file_of_rows_is_read_by_its_name(name: str, tmp_path: Path) -> None:
    decoder(name)
    shown = rows_of_run(a_run(), "r")
    file = tmp_path / f"rows.{name}"
    write_rows(shown, file, name)
    assert read_rows(file) == shown
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def a_row(**changes: Any) -> Row:
    return msgspec.structs.replace(rows_of_run(a_run(), "r")[0], **changes)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "＝", "\t=", "\n=", " ="])
def test_no_text_in_a_csv_begins_a_formula(start: str) -> None:
    name = f'{start}HYPERLINK("elsewhere")'
    content = as_csv([a_row(contestant=name, message=name)])
    [header, cells] = csv.reader(io.StringIO(content.decode(), newline=""))
    assert cells[header.index("contestant")] == f"'{name}"
    assert not any(cell.lstrip().startswith(("=", "+", "@")) for cell in cells)
    assert csv_rows(content)[0].contestant == name


def test_a_negative_number_in_a_csv_stays_a_number() -> None:
    [header, cells] = csv.reader(io.StringIO(as_csv([a_row(batch=-3)]).decode(), newline=""))
    assert cells[header.index("batch")] == "-3"


def test_the_header_of_a_csv_is_the_columns() -> None:
    [header] = csv.reader(io.StringIO(as_csv([]).decode()))
    assert header == [column.name for column in columns()]


def test_the_columns_of_a_csv_may_stand_in_another_order() -> None:
    shown = rows_of_run(a_run(), "r")
    cells = [list(row) for row in csv.reader(io.StringIO(as_csv(shown).decode(), newline=""))]
    turned = io.StringIO(newline="")
    csv.writer(turned).writerows([row[::-1] for row in cells])
    assert csv_rows(turned.getvalue().encode()) == shown


def test_a_spreadsheets_mark_at_the_start_of_a_csv_is_no_part_of_it() -> None:
    shown = rows_of_run(a_run(), "r")
    assert csv_rows(b"\xef\xbb\xbf" + as_csv(shown)) == shown


HEADER = as_csv([])
ONE = as_csv([a_row()])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("csv", b"", "the columns .* are missing"),
        ("csv", b"run,workload\n1,2\n", "the columns .* are missing"),
        ("csv", HEADER.replace(b'"run"', b'"run","race"'), "there are unknown columns: race"),
        ("csv", HEADER.replace(b'"run"', b'"run","run"'), "a column stands there twice"),
        ("csv", HEADER + b"1,2\n", "line 2: 2 cells under"),
        ("csv", ONE.replace(b'"controlled"', b'"upside-down"'), "line 2: Invalid enum value 'upside-down'"),
        ("csv", ONE[:-40], "line 2: unexpected end of data"),
        ("csv", b"\xff\xfe", "can't decode byte"),
        ("json", b"{}", "Expected `array`"),
        ("json", b'[{"run": 1}]', r"Expected `str`, got `int` - at `\$\[0\].run`"),
        ("json", b'[{"run": "\xff"}]', "utf-8|UTF-8"),
        ("jsonl", b"\n\n[]\n", "line 3: Expected `object`"),
        ("parquet", b"PAR1", "does not hold rows as parquet"),
        ("parquet", b"", "does not hold rows as parquet"),
    ],
)
def test_what_holds_no_rows_is_refused_with_the_place(name: str, content: bytes, words: str, tmp_path: Path) -> None:
    decoder(name)
    file = tmp_path / f"rows.{name}"
    file.write_bytes(content)
    with pytest.raises(InvalidRequest, match=words) as told:
        read_rows(file)
    assert len(str(told.value).splitlines()) <= 2
    assert str(file) in str(told.value)


def test_a_file_that_is_not_there_and_markdown_are_not_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="cannot be read: No such file"):
        read_rows(tmp_path / "none.csv")
    with pytest.raises(InvalidRequest, match="rows are not read back from md"):
        read_rows(tmp_path / "none.md")
    with pytest.raises(InvalidRequest, match=r"does not tell the format; give --format csv\|json\|jsonl\|parquet\|md"):
        read_rows(tmp_path / "none.xlsx")


def test_every_format_has_an_end_of_a_files_name() -> None:
    assert [format_of(Path(f"rows.{name}")) for name in FORMATS] == list(FORMATS)


def test_a_file_that_cannot_be_written_says_why_and_leaves_the_last_one(tmp_path: Path) -> None:
    with pytest.raises(FairlapError, match=r"rows.csv could not be written: No such file or directory"):
        write_rows([], tmp_path / "nowhere" / "rows.csv", "csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(FairlapError, match=r"folder.csv could not be written: Is a directory"):
        write_rows([], tmp_path / "folder.csv", "csv")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.csv"]


def test_without_pyarrow_parquet_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(NotAvailable, match=r"pip install 'fairlap\[parquet\]'"):
        encoded([], "parquet")


def test_parquet_has_the_types_of_the_columns() -> None:
    pytest.importorskip("pyarrow")
    from pyarrow import BufferReader, parquet

    shown = rows_of_run(a_run(), "r")
    table = parquet.read_table(BufferReader(encoded(shown, "parquet")))
    assert table.column_names == [column.name for column in columns()]
    assert str(table.schema.field("batch").type) == "int64"
    assert str(table.schema.field("latency_p50_ns").type) == "double"
    assert not table.schema.field("run").nullable
    assert table.to_pylist() == [flat(row) for row in shown]
