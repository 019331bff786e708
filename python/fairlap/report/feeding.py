"""Who was fed how fast, and what the time went into; a race that is fed nothing has no such part."""

from __future__ import annotations

from fairlap.race.fed_figures import NO_CAUSE_TOLD
from fairlap.race.plan import work_told
from fairlap.report import numbers_shown as show
from fairlap.report.markup import Markup, table
from fairlap.report.shown_run import ShownHeat, ShownRun

_NOT_TOLD = "not told by this pipeline"


def feeding(shown: ShownRun, told: ShownHeat) -> Markup | None:
    fed = [(contender, row) for contender, row in told.rows if row.pipeline_throughput_per_s and row.waited_share]
    if not fed:
        return None
    named = dict.fromkeys(name for _, row in fed for name in row.stall_shares)
    causes = [name for name in named if name != NO_CAUSE_TOLD]
    rows = [
        {
            "contestant": contender.contestant,
            "fed by": row.settings.get("feed", ""),
            "items a second": show.rate(row.pipeline_throughput_per_s.value) if row.pipeline_throughput_per_s else "",
            "waited": f"{row.waited_share.value:.1%}" if row.waited_share else "",
            **{name: _share(row.stall_shares.get(name)) for name in causes},
        }
        for contender, row in fed
    ]
    heads = ["contestant", "fed by", "items a second", "waited", *causes]
    names = [contender.contestant for contender, _ in fed]
    caption = f"{work_told(told.work.label, shown.run.plan.data)}, {told.conditions}"
    return table(caption, heads, rows, "feeding cards", names)


def _share(share: float | None) -> str:
    return _NOT_TOLD if share is None else f"{share:.1%}"
