"""The table of lines that every format shows: which columns have anything, their cells, and why others have not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fairlap import quantity_text
from fairlap.history.across.lines import Line
from fairlap.results.decision.estimate_text import estimate_text, interval_text
from fairlap.results.row import Estimate

NO_CLAIM = (
    "The runs did not alternate, so no verdict compares them: what differs between them is listed, and any of it may "
    "be the cause."
)


@dataclass(frozen=True)
class ShownColumn:
    head: str
    name: str  # of the line's field
    money: Literal["", "in", "per"] = ""  # in the currency of the line, or for a unit of it

    def cell(self, line: Line) -> str:
        """Empty where the figure is absent."""
        found: Estimate | None = getattr(line, self.name)
        if found is None:
            return ""
        if self.money:
            return interval_text(found, f" {line.currency}" if self.money == "in" else f"/{line.currency}")
        return estimate_text(self.name, found)


@dataclass(frozen=True)
class JudgedColumn(ShownColumn):
    """What lines were ranked by, where that is what the head says."""

    def cell(self, line: Line) -> str:
        found = line.judged
        if found is None or line.judged_by != self.head:
            return ""
        return quantity_text.figure(found.value, line.judged_unit, found.low, found.high)


COLUMNS = (
    ShownColumn("time of a call", "time_ns"),
    ShownColumn("p99", "latency_p99_ns"),
    ShownColumn("items/s", "throughput_per_s"),
    ShownColumn("peak memory", "peak_memory_bytes"),
    ShownColumn("cost/1000 items", "cost_per_1000_items", "in"),
    ShownColumn("items per money", "items_per_unit_of_money", "per"),
    ShownColumn("cost to score", "cost_to_score", "in"),
    ShownColumn("energy/item", "energy_per_item_j"),
    ShownColumn("energy to score", "energy_to_score_j"),
    ShownColumn("power", "mean_power_w"),
    ShownColumn("items/s/W", "items_per_s_per_w"),
    ShownColumn("CO2/1000 items", "carbon_per_1000_items_g"),
)


def columns_of(lines: Sequence[Line]) -> list[ShownColumn]:
    """Choose what lines were ranked by, then the columns with a figure in one of the lines at least."""
    judged = [JudgedColumn(by, "judged") for by in dict.fromkeys(line.judged_by for line in lines)]
    by_calls = all(line.judged is None or line.judged.value == line.time_ns.value for line in lines if line.time_ns)
    shown = (column for column in COLUMNS if any(column.cell(line) for line in lines))
    return [*judged, *(column for column in shown if column.name != "time_ns" or not by_calls)]


_SILENT = ("cost_to_score", "energy_to_score_j")  # of races of another kind


def reasons(lines: Sequence[Line]) -> list[str]:
    """Why figures are absent: each reason once, with the lines that it is about where it is not about all."""
    found: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        for column in (JudgedColumn(line.judged_by, "judged"), *COLUMNS):
            why = line.absent.get(column.name)
            if why is not None and column.name not in _SILENT:
                found.setdefault((column.head, why), []).append(f"{line.contestant} in {line.run}")
    texts: dict[tuple[str, str], list[str]] = {}
    for (head, why), whose in found.items():
        about = "" if len(whose) == len(lines) else f" of {', '.join(whose)}"
        texts.setdefault((about, why), []).append(head)
    return [f"no {', '.join(heads)}{about}: {why}" for (about, why), heads in texts.items()]


def by_work(lines: Sequence[Line]) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.work, []).append(line)
    return found


def title(line: Line) -> str:
    """Join the contestant and its version."""
    return f"{line.contestant} {line.version or ''}".rstrip()
