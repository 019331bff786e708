"""The row's data dictionary and JSON schema, made from its definition: ``python -m fairlap.results.row_reference``."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from fairlap.errors import FairlapError
from fairlap.json_schemas import plain_schema
from fairlap.machine.files.atomic_files import write_output
from fairlap.results.flat_row import Column, columns
from fairlap.results.row import Row

FOLDER = Path("docs/reference")

# The longest suffix that fits gives the unit: a throughput ends with _per_s and with _s.
_UNITS = {
    "_per_s": "1/s",
    "_ns": "ns",
    "_s": "s",
    "_bytes": "bytes",
    "_j": "J",
    "_w": "W",
    "_excess": "share",
    "_effect": "share",
    "_share": "share",
    "_shares": "share",
    "_relative": "share",
}
_TYPES = {"text": "text", "whole": "whole number", "number": "number", "structure": "JSON"}

_HEAD = """# The row

A row has everything that is known of one contestant on one work under one kind of conditions.

- CSV and Parquet have the columns below, in this order. An *estimate* has three: its value under the name below, and
  the ends of its 95 % interval under `NAME_low` and `NAME_high`.
- JSON and JSON Lines have the fields: there an estimate is an object with `value`, `low` and `high`, and what is JSON
  here is a structure. [The JSON schema](row.schema.json) describes them.
- A value that is absent is empty in CSV and null elsewhere, never 0. The column `absent` gives the reason, by the
  field's name.
- An interval takes at least six processes; with fewer its two ends are empty. Those of energy and power hold what the
  sensors leave open too, so they are always there: with fewer than six processes the lowest and the highest end of any,
  from six on the low end of the interval of the processes' low ends, and the high end of that of their high ends.

`python -m fairlap.results.row_reference` makes this page and the schema from the definition.
"""


def unit_of(column: Column) -> str:
    """By its definition, or the end of the field's name; empty for what has no unit."""
    if column.about.unit or column.kind not in ("number", "structure"):
        return column.about.unit
    ends = [end for end in _UNITS if column.field.endswith(end)]
    return _UNITS[max(ends, key=len)] if ends else ""


def dictionary_text() -> str:
    lines = [_HEAD]
    groups = dict.fromkeys(column.group for column in columns())
    for group in groups:
        lines += [f"## {group.capitalize()}", "", "| column | type | unit | absent? | meaning |", "|" + " --- |" * 5]
        lines += [_line(column) for column in columns() if column.group == group and column.name == column.field]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def schema_text() -> str:
    return msgspec.json.format(msgspec.json.encode(plain_schema(Row)), indent=2).decode() + "\n"


def _line(column: Column) -> str:
    may_be_absent = "yes" if column.nullable else "no"
    kind = "estimate" if column.is_estimate else _TYPES[column.kind]
    return f"| `{column.name}` | {kind} | {unit_of(column)} | {may_be_absent} | {column.meaning} |"


def write_reference(folder: Path) -> None:
    write_output(folder / "row.md", dictionary_text().encode())
    write_output(folder / "row.schema.json", schema_text().encode())


if __name__ == "__main__":
    try:
        write_reference(FOLDER)
    except FairlapError as error:
        sys.exit(f"{error}; run it from the top of the repository")
