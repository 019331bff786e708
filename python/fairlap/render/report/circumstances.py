"""The lower sections of the page: feeding, unranked contestants, blocks, warnings, machine, settings, the command."""

from __future__ import annotations

import msgspec

from fairlap import quantity_text
from fairlap.machine.hardware.device_links import link_facts
from fairlap.render.plan_command import command_of
from fairlap.render.repeated_warnings import warning_kinds
from fairlap.render.report.markup import Markup, joined, scrolling, table, tag
from fairlap.results.columns.feeding import UNKNOWN_CAUSE
from fairlap.results.results import Results
from fairlap.results.work_result import WorkResult
from fairlap.scenarios.process_result import ProcessResult

_NOT_REPORTED = "not reported by this pipeline"


def feeding(shown: Results, work_result: WorkResult) -> Markup | None:
    fed = [
        (result, row) for result, row in work_result.with_rows() if row.pipeline_throughput_per_s and row.waited_share
    ]
    if not fed:
        return None
    named = dict.fromkeys(name for _, row in fed for name in row.stall_shares)
    causes = [name for name in named if name != UNKNOWN_CAUSE]
    hidden, to_device = "copying hidden", shown.run.plan.device != "cpu"
    rows = [
        {
            "contestant": result.contestant,
            "fed by": row.settings.get("feed", ""),
            "items a second": quantity_text.rate(row.pipeline_throughput_per_s.value)
            if row.pipeline_throughput_per_s
            else "",
            "waited": quantity_text.share(row.waited_share.value) if row.waited_share else "",
            **{name: _share(row.stall_shares.get(name)) for name in causes},
            **(
                {hidden: _share(row.copies_hidden_share.value if row.copies_hidden_share else None)}
                if to_device
                else {}
            ),
        }
        for result, row in fed
    ]
    heads = ["contestant", "fed by", "items a second", "waited", *causes, *([hidden] if to_device else [])]
    names = [result.contestant for result, _ in fed]
    caption = f"{shown.run.plan.title_of(work_result.work)}, {work_result.conditions}"
    return table(caption, heads, rows, "feeding cards", names)


def _share(share: float | None) -> str:
    return _NOT_REPORTED if share is None else quantity_text.share(share)


_MOST_DETAILS = 4000
_ABSENT_SETTING = "–"


def not_ranked(work_result: WorkResult) -> Markup | None:
    """List the contestants that were disqualified, failed or could not run, in full."""
    lost = [(result, row) for result, row in work_result.with_rows() if not result.ranked]
    if not lost:
        return None
    return tag(
        "div",
        tag("h3", "Not ranked"),
        (
            tag(
                "div",
                tag("p", tag("strong", result.contestant), ": ", result.trouble_with_code),
                _details(result.processes),
                class_="lost",
            )
            for result, _ in lost
        ),
    )


def _details(processes: tuple[ProcessResult, ...]) -> Markup | None:
    text = next((process.details for process in processes if process.details), "")
    wrong = [error for process in processes for error in process.errors if not error.right]
    checked = (tag("li", f"{each.what}, {each.when}: {each.why}") for each in wrong[:5])
    answers = tag("ul", checked) if wrong else None
    if not text:
        return answers
    return joined(
        answers, tag("details", tag("summary", "Last output"), tag("pre", text[-_MOST_DETAILS:], tabindex="0"))
    )


def blocks(work_result: WorkResult) -> Markup:
    """Every block as a square. A block counts for all contestants or for none."""
    kept, dropped = set(work_result.blocks.kept), set(work_result.blocks.dropped)
    seen = sorted({process.block for result, _ in work_result.with_rows() for process in result.processes})
    incomplete = len(set(seen) - kept - dropped)
    parts = [f"{quantity_text.count(len(kept), 'block')} used", f"{len(dropped)} dropped as noisy"]
    if incomplete:
        parts.append(f"{incomplete} incomplete")
    squares = (
        tag("span", title=f"block {number}: {kind}", class_=f"block {kind}")
        for number in seen
        for kind in ["kept" if number in kept else "dropped" if number in dropped else "incomplete"]
    )
    return tag(
        "div",
        tag("p", tag("strong", f"{work_result.conditions}: "), "; ".join(parts), ". ", str(work_result.blocks)),
        tag("div", squares, class_="blocks", aria_hidden="true"),
    )


def warnings(work_result: WorkResult) -> Markup:
    """Warnings of one kind with the number of processes of each contestant."""
    kinds = warning_kinds(
        (process.contestant, process.warnings) for result, _ in work_result.with_rows() for process in result.processes
    )
    if not kinds:
        return tag("p", f"{work_result.conditions}: none.")
    rows = [
        {
            "warning": f"{kind.first.text} [{kind.first.code}]",
            "processes": f"{kind.by_contestant.total()}",
            "contestants": ", ".join(f"{name} ({count})" for name, count in kind.by_contestant.most_common()),
        }
        for kind in sorted(kinds, key=lambda kind: -kind.by_contestant.total())
    ]
    return table(
        f"Warnings ({work_result.conditions}), the first of each kind",
        ["warning", "processes", "contestants"],
        rows,
        "warnings cards",
    )


def machine(shown: Results) -> Markup:
    facts = {**shown.run.machine, **link_facts(shown.run.roofs)} or {"facts": "none were recorded"}
    pairs = (tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items())
    return tag("dl", pairs, class_="facts")


def settings(work_result: WorkResult) -> Markup:
    """Show common settings once, then those that differ between contestants, then those of one contestant alone."""
    in_force = {result.contestant: dict(row.settings) for result, row in work_result.with_rows() if row.settings}
    for result, row in work_result.with_rows():
        if result.contestant in in_force:
            in_force[result.contestant] = {
                "version": row.version or "",
                **in_force[result.contestant],
            }
    if not in_force:
        return tag("p", "No contestant reported its settings.")
    keys = list(dict.fromkeys(key for own in in_force.values() for key in own))
    shared = [key for key in keys if sum(key in own for own in in_force.values()) > 1]
    same = [key for key in shared if len({own.get(key) for own in in_force.values()}) == 1]
    rows: list[dict[str, Markup | str]] = [
        {"setting": key, **{name: own.get(key, _ABSENT_SETTING) for name, own in in_force.items()}}
        for key in shared
        if key not in same
    ]
    alike = ", ".join(f"{key} {next(iter(in_force.values()))[key]}" for key in same)
    return tag(
        "div",
        tag("p", "Common to all: ", alike, ".") if same else None,
        _differing(rows, list(in_force)) if rows else None,
        tag(
            "div", [part for name, own in in_force.items() if (part := _own_settings(name, own, shared))], class_="own"
        ),
    )


def _differing(rows: list[dict[str, Markup | str]], names: list[str]) -> Markup:
    differing = table("Settings that differ", ["setting", *names], rows, class_="wide")
    return scrolling("Settings that differ", differing)


def _own_settings(name: str, own: dict[str, str], shared: list[str]) -> Markup | None:
    """Show settings that only this contestant has."""
    alone = [(key, value) for key, value in own.items() if key not in shared]
    if not alone:
        return None
    pairs = (tag("div", tag("dt", key), tag("dd", value or "(empty)")) for key, value in alone)
    return tag("div", tag("h3", name), tag("dl", pairs))


def repeating(shown: Results) -> Markup:
    command = command_of(shown.run.plan)
    note = "No single command draws this plan; run the saved plan instead."
    if command:
        note = "This command draws the same plan, with the same orders and the same settings of every process"
        note += ", where the same cores are available" if len(shown.run.plan.available_cores) > 1 else ""
        note += "; the search for the best settings is repeated, too." if shown.run.plan.searches else "."
    plan = msgspec.json.format(msgspec.json.encode(shown.run.plan), indent=1).decode()
    return tag(
        "section",
        tag("h2", "How to repeat it"),
        tag("p", note),
        tag("pre", tag("code", command), tabindex="0") if command else None,
        tag("p", "Save the plan as plan.json and run:"),
        tag("pre", tag("code", "fairlap compare --plan plan.json"), tabindex="0"),
        tag("p", tag("button", "Save the plan", type="button", id="save-plan", hidden=True)),
        tag("details", tag("summary", "The plan"), tag("pre", plan, id="plan", tabindex="0")),
        id="repeat",
    )
