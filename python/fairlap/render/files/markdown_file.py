"""Markdown for a pull request comment: the slower contestants first, then a compact table for every work.

A comment may have 65,536 characters; rows beyond that are only counted, by outcome.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fairlap import quantity_text
from fairlap.render.files.markdown_table import as_code, columns_shown, table_line
from fairlap.render.items_by_batch import NOTE, least_time_lines
from fairlap.render.judged import ratios_note
from fairlap.render.repeated_warnings import WarningKind, warning_kinds
from fairlap.render.scenario_side import notes_on
from fairlap.render.text.corrupted_scores import HEADS as HEADS_OF_CORRUPTED
from fairlap.render.text.corrupted_scores import corrupted_sections
from fairlap.render.text.group_scores import OWN_HEADS, group_sections
from fairlap.render.text.scaling import HEADS, absence_lines, cells_of
from fairlap.request.work import CALLABLE
from fairlap.request.work_title import NOT_COMPARED
from fairlap.results.row import Row
from fairlap.verdict import Verdict
from fairlap.verdict.sentence import needed_text, sensitivity

MOST_CHARACTERS = 65_000
_MOST_FOR_VERDICTS = 30_000
_ROOM_FOR_COUNTS = 500
_MOST_WARNINGS = 5
_MOST_NAMED = 3
_MOST_LEAST_TIMES = 20
_PLAIN_HEADS = (*OWN_HEADS, *HEADS_OF_CORRUPTED)
_WORST_FIRST = (
    "slower",
    "disqualified",
    "failed",
    "unqualified",
    "inconclusive",
    "faster",
    "equivalent",
    "no verdict",
    "unsupported",
)


def encode(rows: Sequence[Row]) -> bytes:
    parts = [_headline(rows), *_mixed(rows)]
    verdicts = sorted((row for row in rows if not _is_baseline(row)), key=_worst_first)
    parts += _as_many_as_fit([(row, f"- {_verdict_line(row)}") for row in verdicts], _MOST_FOR_VERDICTS)
    parts += _least_times(rows)
    room = MOST_CHARACTERS - _ROOM_FOR_COUNTS - sum(len(part) + 1 for part in parts)
    lines: list[tuple[Row, str]] = []
    for group in _groups(rows):
        shown = columns_shown(group)
        answers = next((_answers(row) for row in group if row.place), _answers(group[0]))
        head = f"\n**{_work(group[0])}**, {_circumstances(group[0])}{answers}\n\n"
        head += table_line([column.head for column in shown])
        head += f"\n{table_line(['---'] * len(shown))}\n"
        for number, row in enumerate(group):
            below = _notes(group) + _on_other_inputs(group) + _warnings(group) if number == len(group) - 1 else ""
            lines.append((row, ("" if number else head) + table_line([column.cell(row) for column in shown]) + below))
    parts += _as_many_as_fit([*lines, *_scaling(rows), *_slices(rows)], room)
    return ("\n".join(parts) + "\n").encode()


def _notes(rows: Sequence[Row]) -> str:
    return "".join(f"\n\n{note}" for note in (ratios_note(rows), *notes_on(rows)) if note)


def _scaling(rows: Sequence[Row]) -> list[tuple[Row, str]]:
    """Below all other tables, one for each work that was raced at several scales."""
    groups: dict[object, list[Row]] = {}
    for row in rows:
        if row.scale:
            batch = row.batch // row.ranks if row.scaling == "weak" else row.batch
            key = (row.run, row.workload, row.mode, *row.ranked_precisions, batch, row.device, row.data, row.train_on)
            groups.setdefault((*key, row.conditions), []).append(row)
    lines = []
    for group in groups.values():
        if len({row.scale for row in group}) < 2:
            continue
        head = f"\n**Scaling** of {as_code(group[0].workload)} {group[0].mode}, {group[0].conditions}\n\n"
        head += f"{table_line(HEADS)}\n{table_line(['---'] * len(HEADS))}\n"
        ordered = sorted(group, key=lambda row: (row.contestant, row.threads * row.ranks, row.ranks))
        for number, row in enumerate(ordered):
            contestant, scale, *cells, straggler = cells_of(row)
            shown = [cell or "-" for cell in (as_code(contestant), as_code(scale), *cells, as_code(straggler))]
            below = _listed(absence_lines(ordered)) if number == len(ordered) - 1 else ""
            lines.append((row, ("" if number else head) + table_line(shown) + below))
    return lines


def _slices(rows: Sequence[Row]) -> list[tuple[Row, str]]:
    """Of each metric, its scores by group of items and on corrupted data."""
    lines = []
    for section in (*group_sections(rows), *corrupted_sections(rows)):
        [table] = section.tables
        heads = [as_code(each) if each not in _PLAIN_HEADS else each for each in table.heads]  # a metric may have an @
        head = f"\n**{as_code(section.title)}**\n\n{table_line(heads)}\n{table_line(['---'] * len(heads))}\n"
        for number, (contestant, group, *cells) in enumerate(table.rows):
            shown = [as_code(contestant), as_code(group), *(cell or "-" for cell in cells)]
            below = _listed(section.notes) if number == len(table.rows) - 1 else ""
            lines.append((rows[0], ("" if number else head) + table_line(shown) + below))
    return lines


def _listed(lines: Sequence[str]) -> str:
    return "\n\n" + "\n".join(f"- {as_code(line, most=300)}" for line in lines) if lines else ""


def _mixed(rows: Sequence[Row]) -> list[str]:
    """Before any figure: contestants at settings that a search found are ranked with others."""
    texts = dict.fromkeys(each.text for row in rows for each in row.warnings if each.code == "W_MIXED_DIVISIONS")
    return [f"> {as_code(text, most=300)}\n" for text in texts]


def _least_times(rows: Sequence[Row]) -> list[str]:
    """Of works that differ in their batch alone, the batch at which each contestant needs the least time per item."""
    lines = [f"- {line}" for line in least_time_lines(rows, as_code)]
    if len(lines) > _MOST_LEAST_TIMES:
        further = quantity_text.count(len(lines) - _MOST_LEAST_TIMES, "further contestant")
        lines = [*lines[:_MOST_LEAST_TIMES], f"- {further}; {as_code(f'fairlap show {rows[0].run}')} lists them all"]
    return ["", NOTE, "", *lines] if lines else []


def _on_other_inputs(rows: Sequence[Row]) -> str:
    """How long the first call at each other batch, size and type stalled, and why some have no such time."""
    lines = []
    for row in rows:
        found = [f"{_inputs(name)} {quantity_text.duration(1e9 * s)}" for name, s in row.recompile_stall_s.items()]
        reasons = [f"{_inputs(name)}: {as_code(why, most=200)}" for name, why in row.recompile_absent.items()]
        if found or reasons:
            lines.append(f"- {as_code(row.contestant)}: {'; '.join([*found, *reasons])}")
    return "\n".join(["\n\n*Stall of the first call on other inputs*:\n", *lines]) if lines else ""


def _inputs(name: str) -> str:
    return f"batch {name}" if name.isdecimal() else name


def _warnings(rows: Sequence[Row]) -> str:
    """List the warnings below a table, those that most contestants have first."""
    kinds = warning_kinds((row.contestant, [text]) for row in rows for text in row.warnings)
    kinds.sort(key=lambda kind: (-len(kind.by_contestant), -kind.by_contestant.total()))
    lines = [f"- {as_code(kind.first.text, most=300)}{_whose(kind, rows)}" for kind in kinds[:_MOST_WARNINGS]]
    if len(kinds) > _MOST_WARNINGS:
        further = quantity_text.count(len(kinds) - _MOST_WARNINGS, "further kind")
        lines.append(f"- {further}; {as_code(f'fairlap show {rows[0].run}')} lists them all")
    return "\n".join(["\n\n*Warnings*, the first of each kind:\n", *lines]) if lines else ""


def _whose(kind: WarningKind, rows: Sequence[Row]) -> str:
    if len(rows) == 1:
        return ""
    if len(kind.by_contestant) == len(rows):
        return " (all)"
    if len(kind.by_contestant) > _MOST_NAMED:
        return f" ({len(kind.by_contestant)} of {quantity_text.count(len(rows), 'contestant')})"
    return f" ({', '.join(map(as_code, kind.by_contestant))})"


def _as_many_as_fit(lines: Sequence[tuple[Row, str]], most: int) -> list[str]:
    """Keep the first lines, and report how many were left out."""
    fitting: list[str] = []
    used = 0
    for number, (_, line) in enumerate(lines):
        used += len(line) + 1
        if used > most:
            return [*fitting, "", _left_out([row for row, _ in lines[number:]])]
        fitting.append(line)
    return fitting


def _left_out(rows: Sequence[Row]) -> str:
    return f"*{quantity_text.count(len(rows), 'further row')} left out to fit the comment: {_counts(rows)}.*"


def _headline(rows: Sequence[Row]) -> str:
    compared = [row for row in rows if not _is_baseline(row)]
    baselines = sorted({row.baseline for row in rows if row.baseline})
    against = f", baseline {as_code(baselines[0])}" if len(baselines) == 1 else ""
    return f"### fairlap: {_counts(compared) or 'nothing was compared'}{against}\n"


def _counts(rows: Sequence[Row]) -> str:
    found = Counter("the baseline" if _is_baseline(row) else _standing(row) for row in rows)
    return ", ".join(f"{found[word]} {word}" for word in (*_WORST_FIRST, "the baseline") if found[word])


def _is_baseline(row: Row) -> bool:
    return row.baseline == row.contestant


def _standing(row: Row) -> str:
    if row.verdict is not None:
        return row.verdict
    if row.outcome in ("disqualified", "unqualified", "unsupported"):
        return row.outcome
    return "failed" if row.processes_finished == 0 else "no verdict"


def _worst_first(row: Row) -> tuple[int, float]:
    ratio = row.ratio.value if row.ratio is not None else 1.0
    return _WORST_FIRST.index(_standing(row)), -ratio


def _verdict_line(row: Row) -> str:
    who, where = as_code(row.contestant), f"on {_work(row)}, {row.conditions}"
    if row.ratio is None or row.baseline is None:
        why = as_code(row.message or row.absent.get("ratio", ""), most=300)
        return f"**{_standing(row)}**: {who} {where}: {why}"
    ratio = quantity_text.ratio_interval(row.ratio.value, row.ratio.low, row.ratio.high)
    each = " per request" if row.judged_better == "higher" else ""
    times = f"takes {ratio} times as long{each} as {as_code(row.baseline)}"
    details = quantity_text.count(row.blocks_kept, "block") + _answers(row)
    if row.detectable_effect is not None:
        details += f"; {sensitivity(Verdict(row.verdict), row.detectable_effect)}"
    if row.needed_blocks is not None:
        details += f"; deciding it takes {needed_text(row.needed_blocks)}"
    trouble = f"; {as_code(row.message, most=300)}" if row.message else ""
    return f"**{_standing(row)}**: {who} {times} {where} ({details}){trouble}"


def _groups(rows: Sequence[Row]) -> list[list[Row]]:
    """Group the rows by table, in their order."""
    groups: dict[object, list[Row]] = {}
    for row in rows:
        key = (row.run, row.work_id, row.threads, row.device, row.data, row.conditions)
        groups.setdefault(key, []).append(row)
    return list(groups.values())


def _work(row: Row) -> str:
    fed = f" fed {as_code(row.data)}" if row.data else ""
    on = f" on {as_code(row.train_on)}" if row.train_on else ""
    scale = f" on {row.scale}" if row.scale else ""
    load = f" under load {as_code(row.load)}" if row.load else ""
    work = f"{as_code(row.workload)} {row.mode} {', '.join(row.ranked_precisions)} batch {row.batch}"
    return f"{work}{scale}{fed}{on}{load}"


def _answers(row: Row) -> str:
    """Of callables and commands, with a comma before it: a ratio alone would look as if what they do was proven."""
    if row.workload.partition("[")[0] != CALLABLE or not row.answers:
        return ""
    return f", {row.answers}" if row.answers == NOT_COMPARED else f", answers {as_code(row.answers)}"


def _circumstances(row: Row) -> str:
    kept = quantity_text.count(row.blocks_kept, "block")
    scale = row.scale or quantity_text.count(row.threads, "thread")
    return f"{as_code(row.device)}, {scale}, {row.conditions}, {kept}"
