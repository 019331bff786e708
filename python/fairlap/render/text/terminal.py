"""What a race showed, as text for a terminal: a line for every contestant, then what limits the answer."""

from __future__ import annotations

import math

from fairlap import quantity_text, verdict
from fairlap.printable import joined_lines
from fairlap.render.encoders.text import section_lines
from fairlap.render.items_by_batch import noted_least_times
from fairlap.render.judged import RATIOS_OF_BLOCKS, common_unit_ns, is_apart, judged_text, times_text
from fairlap.render.scenario_side import notes_on
from fairlap.render.text.compilation import batch_text, counts_text, heading
from fairlap.render.text.contestant_lines import contestant_lines, warnings_of_the_work
from fairlap.render.text.corrupted_scores import corrupted_sections
from fairlap.render.text.decision import decision_lines
from fairlap.render.text.group_scores import group_sections
from fairlap.render.text.operations import operations_lines
from fairlap.render.text.operators import operator_lines
from fairlap.render.text.scaling import scaling_lines
from fairlap.render.text.settings_search_text import outcome_text
from fairlap.render.text.works_table import MOST_IN_FULL, to_decide, works_lines
from fairlap.request.names import with_version
from fairlap.request.work import Work
from fairlap.results.columns.compilation import found_for
from fairlap.results.results import Results
from fairlap.results.row import Row
from fairlap.results.work_result import ContestantResult, WorkResult
from fairlap.verdict.warnings import ScatteredBlocks, TooFewBlocks


def text_of(results: Results, *, in_full: bool = False) -> str:
    """Write the whole answer: one paragraph for each work, or a table where there are many."""
    works = results.works()
    as_table = len(works) > MOST_IN_FULL and not in_full
    parts = [joined_lines([*works_lines(results), *_left_out(results)])] if as_table else []
    for work in () if as_table else works:
        lines = _order_lines(results, work)
        for work_result in results.of_work(work):
            lines += [_head(results, work_result), *_contestant_lines(work_result)]
            lines += [f"  {each.contestant}: {outcome_text(each)}." for each in results.run.searches]
            lines += [f"  {line}" for line in _closing_lines(work_result)]
            lines += [f"  {line}" for line in _compilation_lines(results, work_result)]
        lines += operator_lines(results.run, work)
        parts.append(joined_lines(lines))
    if not as_table and (lines := noted_least_times(results.rows)):
        parts.append(joined_lines(lines))
    if lines := scaling_lines(results):
        parts.append(joined_lines(lines))
    sections = [*group_sections(results.rows), *corrupted_sections(results.rows)]
    parts += [joined_lines(section_lines(each)) for each in sections]
    if lines := operations_lines(results):
        parts.append(joined_lines(lines))
    if results.decision is not None:
        parts.append(joined_lines(decision_lines(results.decision)))
    if results.findings:
        parts.append(joined_lines(map(str, results.findings)))
    if codes := _codes_of_trouble(results):
        parts.append(f"What to do: {', '.join(f'`fairlap explain {code}`' for code in codes)}.")
    return "\n\n".join(parts)


def _codes_of_trouble(results: Results) -> list[str]:
    """Collect the codes for which a contestant is not ranked, or a work has no verdict."""
    found = [
        code
        for each in results.work_results
        for code in (
            each.basis.no_verdict_code if each.basis.is_refused else "",
            *(row.code for row in each.contestants if not row.ranked),
        )
    ]
    return sorted({code for code in found if code})


def _left_out(results: Results) -> list[str]:
    """Name what a table of works has no room for, with the command that prints it."""
    there = (("profiles", results.run.profiles), ("found settings", results.run.searches))
    found = " and ".join(name for name, own in there if own)
    return [f"  {found[:1].upper()}{found[1:]} are not shown here; `fairlap show RUN` prints them."] if found else []


def _order_lines(results: Results, work: Work) -> list[str]:
    differs = results.order_differs(work)
    if differs is None:
        return []
    found, controlled = (" < ".join(order) for order in differs)
    return [
        "The order depends on the conditions; see the causes below.",
        f"  as found:   {found}",
        f"  controlled: {controlled}",
    ]


def _head(results: Results, work_result: WorkResult) -> str:
    plan = results.run.plan
    blocks = quantity_text.count(len(work_result.blocks.kept), "complete block")
    seconds = sum(process.elapsed_s for each in work_result.contestants for process in each.processes)
    lasted = f", {quantity_text.seconds(seconds)}" if seconds else ""
    where = plan.where_text(work_result.work)
    title = plan.title_of(work_result.work)
    title += f" · {work_result.basis.remark}" if work_result.basis.remark else ""
    return f"{title} · {where} · {work_result.conditions}: {blocks}{lasted}"


def _contestant_lines(work_result: WorkResult) -> list[str]:
    names = {row.contestant: with_version(row.contestant, row.version) for row in work_result.rows}
    unit_ns = common_unit_ns(work_result.rows)
    figures = {
        row.contestant: (_judged(row, unit_ns), _times_the_first(work_result, result))
        for result, row in work_result.with_rows()
        if row.judged
    }
    width = max(map(len, names.values()))
    columns = [max((len(each[column]) for each in figures.values()), default=0) for column in range(2)]
    lines = []
    for result, row in work_result.with_rows():
        if result.contestant in figures:
            cells = [f"{text:<{size}}" for text, size in zip(figures[result.contestant], columns, strict=True)]
            relations = (
                "not ranked"
                if result.unqualified
                else verdict.relations(work_result.standing, work_result.comparisons, result.contestant)
            )
            text = "  ".join([*cells, relations])
        else:
            text = result.trouble_with_code
        lines.append(f"  {row.place or '-':<3} {names[result.contestant]:<{width}}  {text}".rstrip())
        lines += [f"      {line}" for line in contestant_lines(result, row)]
    return lines


def _judged(row: Row, unit_ns: float | None) -> str:
    modes = f"{len(row.modes)} modes: " if row.modes else ""
    return f"{modes}{judged_text(row, unit_ns)}"


def _times_the_first(work_result: WorkResult, row: ContestantResult) -> str:
    """From the blocks in which both ran; where the two are not compared, of the medians. Empty where nothing is."""
    if work_result.basis.is_refused:
        return ""
    first = work_result.contestants[0]
    if work_result.table is None:
        return quantity_text.times(1.0) if row is first else ""
    found = work_result.comparison(row.contestant, first.contestant)
    if found is None:
        return quantity_text.times(row.median_ns / first.median_ns)
    return times_text(found)


def _note_on_ratios(work_result: WorkResult) -> list[str]:
    """Explain ratios that are on the other side of 1 than the times beside them."""
    first, *others = work_result.rows
    compared = [(row, work_result.comparison(row.contestant, first.contestant)) for row in others]
    apart = any(found is not None and is_apart(found.ratio, row, first) for row, found in compared)
    return [RATIOS_OF_BLOCKS] if apart else []


def _closing_lines(work_result: WorkResult) -> list[str]:
    lines = [*_note_on_ratios(work_result), *notes_on(work_result.rows), *warnings_of_the_work(work_result.rows)]
    if work_result.why_no_verdict:
        lines.append(f"No verdict: {work_result.why_no_verdict}.")
    found = [warning for each in work_result.comparisons for warning in each.warnings]
    lines += dict.fromkeys(f"! {warning} [{warning.code}]" for warning in found if isinstance(warning, TooFewBlocks))
    if scattered := [warning for warning in found if isinstance(warning, ScatteredBlocks)]:
        most = max(scattered, key=lambda warning: warning.factor)
        lines.append(f"! {most} [{most.code}]")
    lines += _lines_of_other_quantities(work_result)
    if limits := _limits(work_result):
        lines.append(" ".join(limits))
    if str(work_result.blocks):
        lines.append(f"{work_result.blocks}.")
    busy = None if work_result.basis.is_refused else work_result.busy  # the reason for no verdict says the same
    others = (work_result.mixed, work_result.unknown_settings, work_result.continued, work_result.curves_apart)
    lines += [f"! {each.text} [{each.code}]" for each in (busy, *others) if each is not None]
    return lines


def _compilation_lines(results: Results, work_result: WorkResult) -> list[str]:
    """Describe what compiling did, and what calls on other inputs cost, each contestant in turn."""
    lines = []
    for result in work_result.contestants:
        found = found_for(results.run, work_result, result)
        if found is None:
            continue
        lines.append(f"  {found.contestant}: {counts_text(found)}")
        lines += [f"      break: {reason}" for reason in dict.fromkeys(found.described.break_reasons)]
        for at in found.batches:
            lines.append(f"      {heading(at)}: {batch_text(at)}")
            lines += [f"          {reason}" for reason in at.resized.reasons]
    return ["What compiling did, in separate processes:", *lines] if lines else []


def _lines_of_other_quantities(work_result: WorkResult) -> list[str]:
    """Compare the fastest with the others by the quantities of a GPU, of a program's runs, and of training to a score.

    Of those of a GPU none is what a user waits for. What the fastest is shown to cost follows.
    """
    first = work_result.contestants[0].contestant
    lines = []
    for other in work_result.other_quantities:
        if not other.is_shown:
            continue
        if other.why_not:
            lines.append(f"Not compared by {other.metric.name}: {other.why_not}.")
        lines += [
            f"By {other.metric.name}: {verdict.sentence(each)}"
            for each in other.comparisons
            if first in (each.a, each.b) and each.ratio != 1.0  # such as of steps, of which all took as many
        ]
    trades = (work_result.trade(first, each.contestant) for each in work_result.contestants[1:])
    return [*lines, *(f"Trade: {text}." for text in trades if text)]


def _limits(work_result: WorkResult) -> list[str]:
    """Report what could not have been seen, and how far the answers are from the reference."""
    limits = []
    if work_result.standing is not None and math.isfinite(work_result.standing.detectable_effect):
        limits.append(
            f"Minimum detectable effect {quantity_text.share(work_result.standing.detectable_effect)} (80 % power)."
        )
    limits += to_decide([work_result])
    ranked = [each for each in work_result.contestants if each.ranked]
    floors = [process.headline.resolution_ns for row in ranked for process in row.finished]
    if any(floors):  # programs that time themselves report none
        limits.append(f"Timer floor {quantity_text.number(max(floors))} ns.")
    errors = {row.contestant: row.worst_relative_error for row in ranked}
    known = {name: error for name, error in errors.items() if error is not None}
    if known:
        worst = max(known, key=known.__getitem__)
        error = f"Worst error against the reference {quantity_text.relative_error(known[worst])} ({worst})."
        which = "All answers" if len(ranked) == len(work_result.contestants) else "All ranked answers"
        limits.append(error if known[worst] else f"{which} are exactly equal.")
    return limits
