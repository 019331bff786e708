"""Rows survive every format that is read back; a file that cannot be written or read is refused with its code."""

from __future__ import annotations

import csv
import io
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from drawn_rows import rows
from fairlap.errors import FairlapError, InvalidRequest, NotAvailable
from fairlap.render.files.csv_file import decode as csv_rows
from fairlap.render.files.csv_file import encode as as_csv
from fairlap.render.outputs import FORMATS, Format, encoded, format_of, read_rows, write, write_all, write_rows
from fairlap.results.flat_row import columns, flat
from fairlap.results.results import results_of
from fairlap.results.row import Row
from hypothesis import HealthCheck, given, settings, strategies
from runs_for_rows import a_run
from runs_to_show import run_of

READ_BACK = [suffix for suffix, each in FORMATS.items() if each.decode]


def available(suffix: str) -> Format:
    found = FORMATS[suffix]
    if found.missing():
        pytest.skip(found.missing())
    return found


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


@pytest.mark.slow
@settings(max_examples=12, suppress_health_check=[HealthCheck.data_too_large])
@given(drawn=strategies.lists(rows(), max_size=3))
def test_rows_are_read_back_to_the_last_bit_in_every_format_that_is_available(drawn: list[Row]) -> None:
    """The same rows for all formats, since drawing them takes the longest."""
    suffixes = [suffix for suffix in READ_BACK if not FORMATS[suffix].missing()]
    assert {".csv", ".json", ".jsonl", ".ndjson"} <= set(suffixes)
    expected = list(bits(drawn))
    for suffix in suffixes:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"rows{suffix.upper()}"
            write_rows(file, drawn)
            back = read_rows(file)
            assert list(Path(folder).iterdir()) == [file]
        assert back == drawn, suffix
        assert list(bits(back)) == expected, suffix


def a_row(**changes: Any) -> Row:
    return msgspec.structs.replace(results_of(a_run(), "r").rows[0], **changes)


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


def test_a_column_that_is_absent_in_every_row_is_left_out_and_read_back_as_absent() -> None:
    rows = [a_row(), a_row(contestant="b")]
    [header, *_] = csv.reader(io.StringIO(as_csv(rows).decode()))
    [whole, *_] = csv.reader(io.StringIO(as_csv(rows, all_columns=True).decode()))
    left_out = set(whole) - set(header)
    assert left_out
    assert {column.field for column in columns() if column.name in left_out} <= set(rows[0].absent)
    assert csv_rows(as_csv(rows)) == csv_rows(as_csv(rows, all_columns=True)) == rows


def test_a_column_without_a_reason_for_its_absence_is_not_left_out() -> None:
    name = "latency_p50_ns"
    assert name not in a_row().absent
    lines = [list(line) for line in csv.reader(io.StringIO(as_csv([a_row()]).decode()))]
    place = lines[0].index(name)
    without = io.StringIO(newline="")
    csv.writer(without).writerows([*line[:place], *line[place + 1 :]] for line in lines)
    with pytest.raises(ValueError, match=name):
        csv_rows(without.getvalue().encode())


def test_the_columns_of_a_csv_may_come_in_any_order() -> None:
    shown = results_of(a_run(), "r").rows
    cells = [list(row) for row in csv.reader(io.StringIO(as_csv(shown).decode(), newline=""))]
    turned = io.StringIO(newline="")
    csv.writer(turned).writerows([row[::-1] for row in cells])
    assert csv_rows(turned.getvalue().encode()) == shown


def test_a_byte_order_mark_at_the_start_of_a_csv_is_skipped() -> None:
    shown = results_of(a_run(), "r").rows
    assert csv_rows(b"\xef\xbb\xbf" + as_csv(shown)) == shown


HEADER = as_csv([])
ONE = as_csv([a_row()])


@pytest.mark.parametrize(
    ("suffix", "content", "word"),
    [
        (".csv", b"", "run"),
        (".csv", b"run,workload\n1,2\n", "recorded_at"),
        (".csv", HEADER.replace(b'"run"', b'"run","race"'), "race"),
        (".csv", HEADER.replace(b'"run"', b'"run","run"'), "twice"),
        (".csv", HEADER + b"1,2\n", "line 2"),
        (".csv", ONE.replace(b'"controlled"', b'"upside-down"'), "line 2.*'upside-down'"),
        (".csv", ONE[:-40], "line 2"),
        (".csv", b"\xff\xfe", "byte"),
        (".json", b"{}", "array"),
        (".json", b'[{"run": 1}]', r"\$\[0\].run"),
        (".json", b'[{"run": "\xff"}]', "utf-8|UTF-8"),
        (".jsonl", b"\n\n[]\n", "line 3"),
        (".parquet", b"PAR1", "parquet"),
        (".parquet", b"", "parquet"),
    ],
)
def test_a_file_that_holds_no_rows_is_refused_with_its_place(
    suffix: str, content: bytes, word: str, tmp_path: Path
) -> None:
    available(suffix)
    file = tmp_path / f"rows{suffix}"
    file.write_bytes(content)
    with pytest.raises(InvalidRequest, match=word) as refused:
        read_rows(file)
    assert len(str(refused.value).splitlines()) <= 2
    assert str(file) in str(refused.value)


def test_a_missing_file_and_a_suffix_that_cannot_be_read_or_written_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="No such file"):
        read_rows(tmp_path / "none.csv")
    for refuse in (
        lambda: read_rows(tmp_path / "none.md"),
        lambda: write_rows(tmp_path / "page.html", []),
        lambda: format_of(Path("rows.xlsx")),
        lambda: format_of(Path("rows")),
    ):
        with pytest.raises(InvalidRequest) as refused:
            refuse()
        assert refused.value.code == "E_OUTPUT_FORMAT"


@pytest.mark.parametrize("suffix", [suffix for suffix, each in FORMATS.items() if each.content != "training"])
def test_a_run_is_written_in_every_format(suffix: str, tmp_path: Path) -> None:
    available(suffix)
    run = run_of(batches=(4, 8))
    write(tmp_path / f"race{suffix}", results_of(run))
    content = (tmp_path / f"race{suffix}").read_bytes()
    starts = {".json": b"{", ".html": b"<!doctype html>", ".svg": b"<svg", ".png": b"\x89PNG", ".md": b"### fairlap"}
    assert content.startswith(starts.get(suffix, b""))
    if suffix == ".svg":
        assert content.count(b"by batch size") >= 2  # one chart of the times and one of the memory


def test_every_file_is_written_even_where_another_one_fails(tmp_path: Path) -> None:
    run = a_run()
    files = [tmp_path / "nowhere" / "race.csv", tmp_path / "nowhere" / "race.json", tmp_path / "race.csv"]
    named = [(file, format_of(file)) for file in files]
    failures = write_all(named, results_of(run))
    assert len(failures) == 2
    assert all(str(file) in failure for file, failure in zip(files, failures, strict=False))
    assert files[2].exists()


def test_a_file_that_cannot_be_written_leaves_the_last_one(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(FairlapError, match="Is a directory"):
        write_rows(tmp_path / "folder.csv", [])
    assert [path.name for path in tmp_path.iterdir()] == ["folder.csv"]


def test_without_its_library_a_format_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlap.render.outputs.find_spec", lambda _name: None)
    assert [suffix for suffix, each in FORMATS.items() if "pip install" in each.missing()] == [
        ".parquet", ".html", ".svg", ".png", ".mllog",
    ]  # fmt: skip
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(NotAvailable, match=r"fairlap\[parquet\]"):
        encoded([], FORMATS[".parquet"])


def test_parquet_has_the_types_of_the_columns() -> None:
    pytest.importorskip("pyarrow", reason="`make test` installs it and runs this")
    from pyarrow import BufferReader, parquet

    shown = results_of(a_run(), "r").rows
    table = parquet.read_table(BufferReader(encoded(shown, FORMATS[".parquet"])))
    assert table.column_names == [column.name for column in columns()]
    assert str(table.schema.field("batch").type) == "int64"
    assert str(table.schema.field("latency_p50_ns").type) == "double"
    assert not table.schema.field("run").nullable
    assert table.to_pylist() == [flat(row) for row in shown]
