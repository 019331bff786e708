"""``submission.toml``: what a run must be to stand on a board, for ``fairlap board`` and ``fairlap verify``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from fairlap import quantity_text
from fairlap.errors import InvalidRequest
from fairlap.explanations import explanations
from fairlap.models.names import workload_names
from fairlap.request.toml_file import read_toml
from fairlap.request.units import Share
from fairlap.request.work import Conditions
from fairlap.results.row import Row
from fairlap.store.stored_rows import RowsOfRun
from fairlap.suggestions import did_you_mean

CODE = "E_SUBMISSION"
_LEAST_BLOCKS = 6  # fewer have no interval
_OWN = re.compile(r"[./:]")  # in the name of a model of a user's own


def _about(meaning: str) -> msgspec.Meta:
    return msgspec.Meta(description=meaning)


class SubmissionRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    models: Annotated[tuple[str, ...], _about("Models that may be raced; any where there are none.")] = ()
    contestants: Annotated[int, _about("Contestants with a place, at least, on every work.")] = 1
    processes: Annotated[int, _about("Processes of every contestant that finished, at least.")] = _LEAST_BLOCKS
    interval: Annotated[Share | None, _about('Widest interval, from its middle to an end: "5%".')] = None
    conditions: Annotated[Conditions | None, _about("Conditions under which contestants were measured.")] = "controlled"
    divisions: Annotated[
        tuple[Literal["default", "best"], ...], _about("default, best, or both, which is the default.")
    ] = ("default", "best")
    forbidden_warnings: Annotated[tuple[str, ...], _about("Codes that no row may have.")] = ()


def rules_in(file: Path) -> SubmissionRules:
    """Read them; a model or a code that looks like a mistyped one is refused, since runs would fail silently by it."""
    rules = read_toml(file, SubmissionRules, "the rules of a submission")
    for key, names, known in (
        ("models", rules.models, workload_names()),
        ("forbidden_warnings", rules.forbidden_warnings, explanations()),
    ):
        for name in names:
            if name not in known and _OWN.search(name) is None and (hint := did_you_mean(name, known)):
                raise InvalidRequest(f"{file}: {key}: there is no {name}; {hint}")
    return rules


def broken_rules(rules: SubmissionRules, run: RowsOfRun) -> list[str]:
    """Name each rule that the run breaks, and where; none for a run that may be submitted."""
    rows = [row for row in run.rows if row.conditions == run.plan.headline]
    if not rows:
        return ["it has no rows"]
    return [f"{rule}: {why}" for rule, why in (*_of_works(rules, rows), *_of_rows(rules, rows))]


def _of_works(rules: SubmissionRules, rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    for work in dict.fromkeys(row.work_id for row in rows):
        own = [row for row in rows if row.work_id == work]
        if rules.models and own[0].workload not in rules.models:
            yield "models", f"{own[0].workload} is none of {', '.join(rules.models)}"
        placed = sum(row.place is not None for row in own)
        if placed < rules.contestants:
            yield "contestants", f"{placed} have a place on {own[0].workload}, at least {rules.contestants} are needed"


def _of_rows(rules: SubmissionRules, rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    for row in rows:
        where = f"{row.contestant} on {row.workload}"
        if rules.conditions not in (None, row.conditions):
            yield "conditions", f"{where} was measured {row.conditions}, not {rules.conditions}"
        if row.division not in rules.divisions:
            yield "divisions", f"{where} is of the division {row.division}, not of {', '.join(rules.divisions)}"
        for code in sorted({each.code for each in row.warnings} & {*rules.forbidden_warnings}):
            yield "forbidden_warnings", f"{where} has {code}"
        if row.place is None:
            continue
        if row.processes_finished < rules.processes:
            yield "processes", f"{where} has {row.processes_finished} that finished, {rules.processes} are needed"
        if rules.interval is not None and (width := _half_width(row)) > rules.interval:
            shown = "no interval" if width == float("inf") else f"an interval of ±{quantity_text.share(width)}"
            yield "interval", f"{where} has {shown}, at most ±{quantity_text.share(rules.interval)} is allowed"


def _half_width(row: Row) -> float:
    """As a share of the figure."""
    found = row.judged
    if found is None or found.low is None or found.high is None or not found.value:
        return float("inf")
    return (found.high - found.low) / 2 / abs(found.value)
