"""What stands behind the figures: blocks, warnings, who is not ranked and why, the machine, the settings."""

from __future__ import annotations

from fairlap.engine import digits
from fairlap.ledger.warnings_alike import kinds_of_warnings
from fairlap.race.laps import Lap
from fairlap.report.markup import Markup, joined, table, tag
from fairlap.report.shown_run import ShownHeat, ShownRun

_MOST_DETAILS = 4000
_ABSENT_SETTING = "–"


def not_ranked(told: ShownHeat) -> Markup | None:
    """Everyone who did other work, crashed or could not take part, in full."""
    lost = [(contender, row) for contender, row in told.rows if not contender.ranked]
    if not lost:
        return None
    return tag(
        "div",
        tag("h3", "Not ranked"),
        (
            tag(
                "div",
                tag("p", tag("strong", contender.contestant), ": ", contender.trouble),
                _details(contender.laps),
                class_="lost",
            )
            for contender, _ in lost
        ),
    )


def _details(laps: tuple[Lap, ...]) -> Markup | None:
    text = next((lap.details for lap in laps if lap.details), "")
    wrong = [error for lap in laps for error in lap.errors if not error.right]
    checked = (tag("li", f"{each.what}, {each.when}: {each.why}") for each in wrong[:5])
    answers = tag("ul", checked) if wrong else None
    if not text:
        return answers
    return joined(
        answers, tag("details", tag("summary", "What it said last"), tag("pre", text[-_MOST_DETAILS:], tabindex="0"))
    )


def blocks(told: ShownHeat) -> Markup:
    """Every block as a square. A block counts for everyone or for nobody."""
    kept, dropped = set(told.heat.blocks.kept), set(told.heat.blocks.dropped)
    seen = sorted({lap.block for contender, _ in told.rows for lap in contender.laps})
    incomplete = len(set(seen) - kept - dropped)
    parts = [f"{digits.counted(len(kept), 'block')} kept", f"{len(dropped)} dropped as noisy, blind to who ran"]
    if incomplete:
        parts.append(f"{incomplete} incomplete")
    squares = (
        tag("span", title=f"block {number}: {kind}", class_=f"block {kind}")
        for number in seen
        for kind in ["kept" if number in kept else "dropped" if number in dropped else "incomplete"]
    )
    return tag(
        "div",
        tag("p", tag("strong", f"{told.conditions}: "), "; ".join(parts), ". ", told.heat.blocks.told),
        tag("div", squares, class_="blocks", aria_hidden="true"),
    )


def warnings(told: ShownHeat) -> Markup:
    """Alike but for their numbers, they are one: with how many processes said so, and whose."""
    kinds = kinds_of_warnings((lap.contestant, lap.warnings) for contender, _ in told.rows for lap in contender.laps)
    if not kinds:
        return tag("p", f"{told.conditions}: none.")
    rows = [
        {
            "warning": kind.first,
            "processes": f"{kind.said_by.total()}",
            "of": ", ".join(f"{name} ({count})" for name, count in kind.said_by.most_common()),
        }
        for kind in sorted(kinds, key=lambda kind: -kind.said_by.total())
    ]
    return table(
        f"Warnings, {told.conditions}; the first of each kind", ["warning", "processes", "of"], rows, "warnings cards"
    )


def machine(shown: ShownRun) -> Markup:
    facts = shown.run.machine or {"facts": "none were kept"}
    pairs = (tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items())
    return tag("dl", pairs, class_="facts")


def settings(told: ShownHeat) -> Markup:
    """What differs between contestants stands first; what is the same for all is said once."""
    in_force = {contender.contestant: dict(row.settings) for contender, row in told.rows if row.settings}
    for contender, row in told.rows:
        if contender.contestant in in_force:
            in_force[contender.contestant] = {"version": row.version or "", **in_force[contender.contestant]}
    if not in_force:
        return tag("p", "No contestant told its settings.")
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
        tag("p", "The same for all: ", alike, ".") if same else None,
        _differing(rows, list(in_force)) if rows else None,
        tag(
            "div", [part for name, own in in_force.items() if (part := _own_settings(name, own, shared))], class_="own"
        ),
    )


def _differing(rows: list[dict[str, Markup | str]], names: list[str]) -> Markup:
    told = table("Settings that several have and that differ", ["setting", *names], rows, class_="wide")
    return tag("div", told, class_="scroll", tabindex="0", role="region", aria_label="Settings that differ")


def _own_settings(name: str, own: dict[str, str], shared: list[str]) -> Markup | None:
    """What only this one told of."""
    alone = [(key, value) for key, value in own.items() if key not in shared]
    if not alone:
        return None
    pairs = (tag("div", tag("dt", key), tag("dd", value or "(empty)")) for key, value in alone)
    return tag("div", tag("h3", name), tag("dl", pairs))
