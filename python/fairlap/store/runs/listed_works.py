"""The works of listed runs for people: by their titles, and where two have one title, with some of their ids."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairlap.request.work_title import with_id, work_title
from fairlap.store.search import RunSummary


def listed_works(runs: Sequence[RunSummary]) -> dict[str, list[str]]:
    """Make a line for each work, by run: what was raced, and the contestants by place."""
    ids: dict[str, set[str]] = {}
    for run in runs:
        for work, work_id in run.works_by_id:
            ids.setdefault(work_title(work, run.data, run.frameworks), set()).add(work_id)
    return {run.run: [_line(run, work, work_id, ids) for work, work_id in run.works_by_id] for run in runs}


def with_titles(run: RunSummary) -> RunSummary:
    """Name works that are no model, such as commands, as the list for people does."""
    titles = {work: work_title(work, "", run.frameworks) for work in run.works}
    placed = tuple(msgspec.structs.replace(each, work=titles.get(each.work, each.work)) for each in run.placed)
    return msgspec.structs.replace(run, works=tuple(titles[work] for work in run.works), placed=placed)


def _line(run: RunSummary, work: str, work_id: str, ids: dict[str, set[str]]) -> str:
    title = work_title(work, run.data, run.frameworks)
    shown = with_id(title, work_id) if len(ids[title]) > 1 and work_id else title
    return f"{shown}: {run.standing(work, work_id)}"
