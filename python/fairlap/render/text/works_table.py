"""Many works on one screen: a line for each, a column for each contestant, every kind of warning once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from fairlap import quantity_text, verdict
from fairlap.engine.measurement import Notice
from fairlap.render.encoders.text import aligned
from fairlap.render.items_by_batch import differ_in_batch_alone, item_texts, noted_least_times
from fairlap.render.judged import common_unit_ns, judged_text, times_text
from fairlap.render.text.contestant_lines import OF_THE_WORK
from fairlap.request.work import Work
from fairlap.results.results import Results
from fairlap.results.work_result import WorkResult
from fairlap.verdict import Verdict
from fairlap.verdict.warnings import ScatteredBlocks, TooFewBlocks

MOST_IN_FULL = 3
"""Works that are shown one by one; more are a table."""

_SIGNS = {Verdict.EQUIVALENT: " =", Verdict.INCONCLUSIVE: " ?"}
_MEANINGS = {" =": "= equivalent to the fastest", " ?": "? undecided against the fastest"}


def works_lines(results: Results) -> list[str]:
    """One table for each kind of conditions."""
    works = [each for work in results.works() for each in results.of_work(work)]
    lines = []
    for conditions in dict.fromkeys(each.conditions for each in works):
        lines += _table(results, [each for each in works if each.conditions == conditions])
    return lines


def _table(results: Results, works: Sequence[WorkResult]) -> list[str]:
    common, names = _parts([results.run.plan.title_of(each.work) for each in works])
    there = {each.contestant for work in works for each in work.contestants}
    contestants = [name for name in results.contestants if name in there]
    judged = dict.fromkeys(each.basis.judged.by for each in works)
    unit_ns = common_unit_ns(row for each in works for row in each.rows[:1])
    alone = len(results.contestants) == 1
    every_row = [row for each in works for row in each.rows]
    items = _items(works) if differ_in_batch_alone(every_row) else {}
    heads = [head for name in contestants for head in ([name, "per item"] if items else [name])]
    rows = [["work", *heads, *([] if alone else ["fastest"])]]
    for name, each in zip(names, works, strict=True):
        cells = [name]
        for contestant in contestants:
            cells.append(_cell(each, contestant, unit_ns))
            cells += [items.get((each.work, contestant), "")] if items else []
        rows.append([*cells, *([] if alone else [_fastest(each)])])
    blocks = {len(each.blocks.kept) for each in works}
    where = f"{results.run.plan.device} · {works[0].conditions}"
    head = f"{' · '.join([*common, where])}: {', '.join(judged)} of {quantity_text.count(len(works), 'work')}"
    least, most = min(blocks), max(blocks)
    kept = quantity_text.count(most, "complete block") if least == most else f"{least} to {most} complete blocks"
    lines = [f"{head}, {kept} each"]
    lines += [f"  {line}" for line in aligned(rows)]
    outcome = f"{contestants[0]} was raced alone, so there is nothing to compare it with." if alone else _winners(works)
    lines += [f"  {text}" for text in (_legend(rows), outcome, *noted_least_times(every_row)) if text]
    return [*lines, *(f"  {text}" for text in to_decide(works)), *_warnings(works, alone=alone)]


def _items(works: Sequence[WorkResult]) -> dict[tuple[Work, str], str]:
    """Write the time per item of each contestant in each work."""
    keys = [(each.work, row.contestant) for each in works for row in each.rows]
    return dict(zip(keys, item_texts([row for each in works for row in each.rows]), strict=True))


def _parts(titles: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split titles into what all have and what each has of its own."""
    split = [title.split(" · ") for title in titles]
    common = [part for part in split[0] if all(part in parts for parts in split)]
    return common, [
        " · ".join(part for part in parts if part not in common) or title
        for parts, title in zip(split, titles, strict=True)
    ]


def _cell(work: WorkResult, contestant: str, unit_ns: float | None) -> str:
    """Show the figure of the first, and of the others how many times it: a dash where a contestant did not run."""
    found = next(((result, row) for result, row in work.with_rows() if result.contestant == contestant), None)
    if found is None:
        return "-"
    result, row = found
    if row.judged is None:
        return result.code or row.outcome
    if result.unqualified:
        return f"{judged_text(row, unit_ns)} {result.code}"
    first = work.contestants[0].contestant
    if contestant == first:
        return judged_text(row, unit_ns)
    compared = work.comparison(contestant, first)
    if compared is None:
        return judged_text(row, unit_ns)
    return times_text(compared) + _SIGNS.get(compared.verdict, "")


def _fastest(work: WorkResult) -> str:
    if work.why_no_verdict:
        return f"no verdict: {work.basis.no_verdict_code}" if work.basis.no_verdict_code else "no verdict"
    return (work.standing.winner if work.standing else None) or "undecided"


def _legend(rows: Sequence[Sequence[str]]) -> str:
    cells = [cell for row in rows[1:] for cell in row[1:-1]]
    used = [text for sign, text in _MEANINGS.items() if any(cell.endswith(sign) for cell in cells)]
    return "; ".join(used)


def _winners(works: Sequence[WorkResult]) -> str:
    won = Counter(each.standing.winner for each in works if each.standing and each.standing.winner)
    parts = [f"{name} is the fastest in {count}" for name, count in won.most_common()]
    if open_ := len(works) - won.total():
        parts.append(f"{open_} without a single fastest")
    return f"Of {quantity_text.count(len(works), 'work')}: {', '.join(parts)}."


def to_decide(works: Sequence[WorkResult]) -> list[str]:
    """Estimate what undecided works would take, at the pace of the blocks so far: each gets as many."""
    found = [verdict.needed_blocks(each) for work in works for each in work.comparisons]
    needed = max((each for each in found if each is not None), default=None)
    if needed is None:
        return []
    lasting_s = float(f"{needed * sum(map(_block_s, works)):.2g}")
    lasting = f", {quantity_text.seconds(lasting_s)}" if lasting_s else ""
    each = " each" if len(works) > 1 else ""
    return [f"Deciding it takes {verdict.needed_text(needed)}{each}{lasting} (`fairlap explain inconclusive`)."]


def _block_s(work: WorkResult) -> float:
    processes = [process for each in work.contestants for process in each.processes]
    return sum(each.elapsed_s for each in processes) / max(1, len({each.block for each in processes}))


def _warnings(works: Sequence[WorkResult], *, alone: bool) -> list[str]:
    """Every kind of warning once, with the number of works that have it."""
    first: dict[str, str] = {}
    count: Counter[str] = Counter()
    for work in works:
        found = {each.code: each.text for each in reversed(list(_notices(work, alone=alone)))}
        for code, text in found.items():
            first.setdefault(code, text)
        count.update(list(found))
    return [
        f"  ! in {quantity_text.count(count[code], 'work')}: {text} {f'[{code}]' if code else ''}".rstrip()
        for code, text in first.items()
    ]


def _notices(work: WorkResult, *, alone: bool) -> Iterator[Notice]:
    if work.why_no_verdict and (work.basis.is_refused or not alone):
        yield Notice(work.basis.no_verdict_code, f"no verdict: {work.basis.why_without_code}")
    busy = None if work.basis.is_refused else work.busy  # the reason for no verdict says the same
    for each in (busy, work.mixed, work.unknown_settings, work.curves_apart, work.continued):
        if each is not None:
            yield each
    for compared in work.comparisons:
        for warning in compared.warnings:
            if isinstance(warning, TooFewBlocks | ScatteredBlocks):
                yield Notice(warning.code, str(warning))
    for result, row in work.with_rows():
        if result.trouble:
            yield Notice(result.code, f"{result.contestant}: {result.trouble}")
        for notice in row.warnings:
            named = "" if notice.code in OF_THE_WORK else f"{result.contestant}: "
            yield Notice(notice.code, f"{named}{notice.text}")
