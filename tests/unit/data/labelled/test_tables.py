"""CSV and Parquet files: which column is learnt, as what, and what is refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.data.labelled.csv_file import csv_items
from fairlap.data.labelled.items import Items
from fairlap.data.labelled.parquet_file import parquet_items
from fairlap.errors import InvalidRequest

HEIGHTS, WEIGHTS = [1.5, 1.7, 1.6, 1.8, 1.9, 2.0], [50, 60, 70, 80, 90, 100]
SPECIES = ["wolf", "bear", "wolf", "ape", "bear", "ape"]


def written(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text)
    return path


def table(folder: Path, labels: list[Any], name: str = "label") -> Path:
    rows = zip(HEIGHTS, WEIGHTS, labels, strict=True)
    return written(folder, f"height,weight,{name}\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))


def refused(path: Path, column: str = "") -> str:
    """Return the line that refuses it."""
    with pytest.raises(InvalidRequest) as raised:
        (parquet_items if path.suffix == ".parquet" else csv_items)(path, column)
    assert raised.value.code == "E_DATA"
    line = str(raised.value)
    assert str(path) in line
    assert "\n" not in line
    return line


def test_text_labels_are_sorted_classes_with_their_names(tmp_path: Path) -> None:
    found = csv_items(table(tmp_path, SPECIES), "")
    assert found.classes == ("ape", "bear", "wolf")
    assert found.labels.tolist() == [2, 1, 2, 0, 1, 0]
    assert found.labels.dtype == np.int32
    np.testing.assert_array_equal(found.inputs["features"], np.stack([HEIGHTS, WEIGHTS], axis=1))
    assert (found.sizes.item, found.sizes.classes) == ((2,), 3)


def test_any_column_may_hold_the_labels(tmp_path: Path) -> None:
    path = written(tmp_path, "kind,height\n" + "".join(f"{a},{b}\n" for a, b in zip(SPECIES, HEIGHTS, strict=True)))
    assert csv_items(path, "kind").classes == ("ape", "bear", "wolf")
    assert csv_items(path, "kind").inputs["features"].tolist() == [[each] for each in HEIGHTS]


def test_few_whole_numbers_are_classes_in_the_order_of_the_numbers(tmp_path: Path) -> None:
    found = csv_items(table(tmp_path, [10, 9, 10, 9, -1, -1]), "")
    assert found.classes == ("-1", "9", "10")
    assert found.labels.tolist() == [2, 1, 2, 1, 0, 0]


def numbered(folder: Path, different: int) -> Items:
    rows = "".join(f"{number / 7},{number % different}\n" for number in range(60))
    return csv_items(written(folder, "x,y\n" + rows), "")


def test_more_than_twenty_whole_numbers_are_values(tmp_path: Path) -> None:
    assert len(numbered(tmp_path, 20).classes) == 20
    found = numbered(tmp_path, 21)
    assert (found.classes, found.sizes.classes, found.labels.shape) == ((), None, (60, 1))


def test_numbers_with_fractions_are_values(tmp_path: Path) -> None:
    found = csv_items(table(tmp_path, [0.5, 1.0, 0.5, 1.0, 0.5, 1.0]), "")
    assert (found.classes, found.labels.ravel().tolist()) == ((), [0.5, 1.0, 0.5, 1.0, 0.5, 1.0])


def test_a_byte_order_mark_quotes_and_empty_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    rows = "".join(f'{a},"{b}, the great"\r\n\r\n' for a, b in zip(HEIGHTS, SPECIES, strict=True))
    path.write_bytes(b"\xef\xbb\xbf" + f'"height",name\r\n{rows}'.encode())
    found = csv_items(path, "")
    assert found.classes[0] == "ape, the great"
    assert len(found) == 6


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "no items"),
        ("height,label\n", "no items"),
        ("a,b\n1,2\n3\n", "line 3"),
        ("a,b\n1,2,3\n", "line 2"),
        ("a,b\n1,x\n,y\n1,x\n", "line 3"),
        ("a,b\n1,x\nnan,y\n1,x\n", "line 3"),
        ("a,b\n1,x\n2,y\n1,inf\n2,y\n1,z\n9,1", ""),
        ("a,a,b\n1,2,x\n", "two columns"),
        ("a;b\n1;x\n2;y\n", "commas"),
        ("b\nx\ny\nx\ny\nx\n", "one column"),
        ("a,b\nred,x\nblue,y\nred,x\nblue,y\nred,x\n", "'red'"),
        ("a,b\n" + "1,x\n" * 9, "one class"),
        ("a,b\n" + "1,0.5\n" * 9, "0.5"),
        ("a,b\n1,x\n2,y\n", "2 items"),
        ('a,b\n1,"x\n', ""),
        ("a,b\n" + "1e300,x\n1,y\n" * 5, "'a' has 1e+300 in item 1"),
        ("a,b\n1,x\nhello,y\n" + "1,x\n" * 5, "'hello' in item 2"),
    ],
)
def test_a_table_that_cannot_be_learnt_is_refused(text: str, part: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    if text.endswith("9,1"):  # text labels, one of which reads like a number
        assert csv_items(path, "").classes == ("1", "inf", "x", "y", "z")
        return
    assert part in refused(path)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("1.5,50,1\n1.7,60,0\n" * 3, ""),
        ("1.5,50,wolf\n" + "1.7,60,bear\n1.6,70,wolf\n" * 3, ""),
        ("1e3, -2 ,.5\n" + "1,2,3\n2,3,4\n" * 3, ""),
        ("wolf,1.5\n" + "bear,1.7\nwolf,1.6\n" * 3, "wolf"),
    ],
)
def test_a_file_without_a_header_line_is_refused_and_no_item_is_lost(text: str, column: str, tmp_path: Path) -> None:
    assert "no header line" in refused(written(tmp_path, text), column)


def test_a_header_may_have_numbers_and_the_name_of_a_class(tmp_path: Path) -> None:
    rows = "".join(f"{a},{b},{c}\n" for a, b, c in zip(HEIGHTS, WEIGHTS, SPECIES, strict=True))
    assert len(csv_items(written(tmp_path, "2024,2025,animal\n" + rows), "")) == 6
    assert len(csv_items(written(tmp_path, "height,2025,wolf\n" + rows), "")) == 6


def test_a_column_that_does_not_exist_is_refused_with_those_that_do(tmp_path: Path) -> None:
    line = refused(table(tmp_path, SPECIES), "kind")
    assert "height, weight, label" in line


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b"a,b\n\xff\xfe,1\n")
    assert "UTF-8" in refused(path)


class TestParquet:
    arrow = pytest.importorskip("pyarrow", reason="`make test` installs it and runs this")

    def table(self, folder: Path, **columns: Any) -> Path:
        from pyarrow import parquet

        path = folder / "table.parquet"
        parquet.write_table(self.arrow.table(columns), path)
        return path

    def test_it_is_read_as_a_csv_file_with_the_same_columns_is(self, tmp_path: Path) -> None:
        found = parquet_items(self.table(tmp_path, height=HEIGHTS, weight=WEIGHTS, label=SPECIES), "")
        assert found.hash == csv_items(table(tmp_path, SPECIES), "").hash

    def test_booleans_and_dictionaries_are_read(self, tmp_path: Path) -> None:
        kinds = self.arrow.array(SPECIES).dictionary_encode()
        found = parquet_items(self.table(tmp_path, tall=[False, True] * 3, kind=kinds), "kind")
        assert found.inputs["features"].ravel().tolist() == [0.0, 1.0] * 3
        assert found.classes == ("ape", "bear", "wolf")

    def test_missing_values_other_types_and_damaged_files_are_refused(self, tmp_path: Path) -> None:
        assert "lacks 1 of 6" in refused(self.table(tmp_path, a=[1, None, 3, 4, 5, 6], b=SPECIES))
        assert "finite" in refused(self.table(tmp_path, a=[1, float("nan"), 3, 4, 5, 6], b=SPECIES))
        assert "type" in refused(self.table(tmp_path, a=[[1]] * 6, b=SPECIES))
        assert "no column" in refused(self.table(tmp_path, a=HEIGHTS, b=SPECIES), "c")
        assert "no items" in refused(self.table(tmp_path, a=[], b=[]))
        damaged = tmp_path / "table.parquet"
        damaged.write_bytes(b"PAR1 and nothing else")
        refused(damaged)
