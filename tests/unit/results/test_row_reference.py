"""The published schema and dictionary are those of the row, and agree with the columns of the exports."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from fairlap.render.files import csv_file
from fairlap.results.flat_row import columns
from fairlap.results.row import Row
from fairlap.results.row_reference import dictionary_text, schema_text, unit_of, write_reference

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"


@pytest.mark.parametrize("name", ["row.md", "row.schema.json"])
def test_what_is_published_is_what_the_definition_gives(name: str, tmp_path: Path) -> None:
    write_reference(tmp_path)
    assert (REFERENCE / name).read_text() == (tmp_path / name).read_text()


def test_schema_header_columns_and_dictionary_agree() -> None:
    published = msgspec.json.decode(schema_text())["$defs"]["Row"]
    names = [column.name for column in columns()]
    assert csv_file.encode([]).decode().strip().replace('"', "").split(",") == names
    assert list(dict.fromkeys(column.field for column in columns())) == list(published["properties"])
    assert published["required"] == list(Row.__struct_fields__)
    for column in columns():
        described = published["properties"][column.field]
        assert column.meaning.startswith(described["description"])
        assert column.nullable >= ({"type": "null"} in described.get("anyOf", []))
        in_dictionary = column.name == column.field  # an estimate has one line for its three columns
        assert dictionary_text().count(f"| `{column.name}` |") == int(in_dictionary)
        assert (f"| `{column.name}` | estimate |" in dictionary_text()) == column.is_estimate


def test_the_unit_is_read_off_the_end_of_the_name() -> None:
    units = {column.name: unit_of(column) for column in columns()}
    assert units["latency_p50_ns"] == units["latency_p50_ns_low"] == "ns"
    assert units["throughput_per_s"] == "1/s"
    assert (units["import_s"], units["peak_memory_bytes"], units["mean_power_w"]) == ("s", "bytes", "W")
    assert units["energy_per_item_j"] == "J"
    assert units["memory_bytes"] == "bytes"
    assert (units["workload"], units["batch"], units["settings"]) == ("", "", "")


def test_every_number_with_an_interval_has_a_unit() -> None:
    assert [column.name for column in columns() if column.is_estimate and not unit_of(column)] == []
