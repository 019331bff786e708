"""All columns of all rows, for the table that a page fills when somebody opens it."""

from __future__ import annotations

from typing import Any

import msgspec

from fairlap.ledger.columns import columns, flat
from fairlap.report.numbers_shown import plain
from fairlap.report.packed import packed
from fairlap.report.shown_run import ShownRun

_KEYS = frozenset({"run", "recorded_at", "contestant", "conditions", "absent"})


def every_figure(shown: ShownRun) -> dict[str, Any]:
    """The columns with their meanings, and the rows under them; ``absent`` is folded into the cells."""
    told = [column for column in columns() if column.name not in _KEYS]
    records = []
    for heat, contender, row in shown.every_row():
        own = flat(row)
        record = {"work": heat.work.label, "conditions": heat.conditions, "contestant": contender.contestant}
        for column in told:
            value = own[column.name]
            why = row.absent.get(column.field) if value is None and column.name == column.field else None
            if column.kind == "structure":
                value = _readable(msgspec.json.decode(value))
            record[column.name] = plain(value) if why is None else f"absent: {why}"
        records.append(record)
    described = [{"name": column.name, "group": column.group, "meaning": column.meaning} for column in told]
    return {"described": described, "rows": packed(records)}


def _readable(value: Any) -> str:
    """A structure in words: ``anonymous 54804480, file 40431616``."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_readable(each)}" for key, each in value.items())
    if isinstance(value, list):
        return "; ".join(_readable(each) for each in value)
    return f"{plain(value)}"
