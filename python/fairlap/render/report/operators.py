"""The section of the page that shows in which operators each contestant spends a call."""

from __future__ import annotations

from fairlap import quantity_text
from fairlap.render.report.markup import Markup, scrolling, table, tag
from fairlap.render.text.operators import profile_head
from fairlap.request.work import Work
from fairlap.results.columns.operators import OVERHEAD, ContestantProfile, contestant_profiles
from fairlap.results.results import Results

_MOST_SHOWN = 20
_HEADS = ("operator", "kind", "calls", "time", "share", "GFLOP/s", "")
NOTE = (
    "Untimed processes after the blocks ran each framework's own profiler, or on a GPU took the device's own records; "
    "the ranking does not rest on them. Times are of profiled calls, which take longer than others, and of an operator "
    "itself, without those that it called. Overhead is what no operator accounts for."
)


def operators(shown: Results, work: Work) -> list[Markup]:
    """One table for each contestant that was profiled."""
    return [
        tag("div", tag("h3", profile_head(each)), None if each.why else _table(each))
        for each in contestant_profiles(shown.run, work)
    ]


def _table(profile: ContestantProfile) -> Markup:
    rows = [_row(each.operator.name, each.operator.self_ns, each.share) for each in profile.operators[:_MOST_SHOWN]]
    for row, each in zip(rows, profile.operators, strict=False):
        row["kind"] = each.operator.kind
        row["calls"] = quantity_text.number(each.operator.calls)
        if each.operator.flops is not None and each.operator.self_ns:
            row["GFLOP/s"] = quantity_text.number(each.operator.flops / each.operator.self_ns)
    if rest := profile.operators[_MOST_SHOWN:]:
        name = quantity_text.count(len(rest), "more operator")
        rows.append(_row(name, sum(each.operator.self_ns for each in rest), sum(each.share for each in rest)))
    if profile.overhead_ns:
        rows.append(_row(OVERHEAD, profile.overhead_ns, profile.overhead_ns / profile.call_ns))
    heads = [head for head in _HEADS if head != "GFLOP/s" or any("GFLOP/s" in row for row in rows)]
    contestants = [profile.contestant] * len(rows)
    title = f"Operators of {profile.contestant}"
    return scrolling(title, table(title, heads, rows, contestants=contestants))


def _row(name: str, self_ns: float, share: float) -> dict[str, Markup | str]:
    bar = tag("meter", value=f"{share:.4f}", min="0", max="1")
    return {"operator": name, "time": quantity_text.duration(self_ns), "share": quantity_text.share(share), "": bar}
