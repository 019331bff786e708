"""The Markdown of a comment: what the gate found, the rows, and where the charts are."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fairlap import quantity_text
from fairlap.errors import InvalidRequest
from fairlap.history.gate import Finding, Status
from fairlap.pull_request.event import CODE
from fairlap.render.files.markdown_file import MOST_CHARACTERS, encode
from fairlap.render.files.markdown_table import as_code
from fairlap.results.row import Row

_NAME = re.compile(r"[A-Za-z0-9_. -]{1,60}")
_HEADLINES = {
    Status.PASSED: "within the allowed slowdown",
    Status.SLOWER: "**slower**",
    Status.INCONCLUSIVE: "inconclusive",
    Status.NOT_COMPARABLE: "not comparable",
}
_MOST_FINDINGS = 20
_CHARTS = "\n[Charts and samples]("
_LINK = re.compile(r"https?://[^\s()<>]+")


def marker(name: str) -> str:
    """Make the hidden first line by which the comment of this name is found again."""
    if not _NAME.fullmatch(name) or "--" in name:
        raise InvalidRequest(
            f"{name!r} is not a name of a comment; use letters, digits, spaces, '_', '-' and '.'", code=CODE
        )
    return f"<!-- fairlap pull request: {name} -->"


def with_charts(body: str, charts: str) -> str:
    """Replace the link at the end of the text."""
    if not _LINK.fullmatch(charts):
        return body
    head, link, _ = body.rpartition(_CHARTS)
    return f"{head if link else body}{_CHARTS}{charts})\n"


def require_marked(body: str, name: str) -> None:
    if not body.startswith(marker(name)):
        raise InvalidRequest(f"the file does not begin with {marker(name)}; write it with the same --name", code=CODE)


def comment_text(
    name: str,
    findings: Sequence[Finding],
    rows: Sequence[Row],
    *,
    max_slowdown: float | None,
    charts: str = "",
    table: str = "",
    trades: Sequence[str] = (),
) -> str:
    """As long as a comment may be. All that a benchmark printed is written so that it is never markup.

    ``table`` is Markdown in place of that of the rows; ``max_slowdown`` is None where each finding has its own.
    ``trades`` say what a faster side costs.
    """
    graver = sorted(findings, key=lambda each: each.status is not Status.SLOWER)
    parts = [
        marker(name),
        f"## Speed ({name}): {_headline(findings)}",
        " ".join(_rules(findings, max_slowdown)),
        *(f"- {each.word}: {as_code(each.text, most=400)}" for each in graver[:_MOST_FINDINGS]),
    ]
    if len(graver) > _MOST_FINDINGS:
        parts.append(f"- {quantity_text.count(len(graver) - _MOST_FINDINGS, 'further finding')}")
    parts += [f"- trade: {as_code(each, most=400)}" for each in trades[:_MOST_FINDINGS]]
    foot = with_charts("", charts)
    head = "\n".join([*parts[:1], "", *parts[1:3], "", *parts[3:], ""])
    table = encode(rows).decode() if rows else table
    if len(head) + len(table) + len(foot) > MOST_CHARACTERS:
        table = "*The table is left out to fit the comment; the run file has it.*\n"
    return f"{head}\n{table}{foot}"


def _headline(findings: Sequence[Finding]) -> str:
    """Name what was found, and the requirements that are shown not to be met."""
    worst = _worst(findings)
    if worst is not Status.SLOWER:
        return _HEADLINES[worst]
    beyond = [each for each in findings if each.status is Status.SLOWER]
    slower = [] if all(each.required for each in beyond) else [_HEADLINES[Status.SLOWER]]
    unmet = dict.fromkeys(each.required for each in beyond if each.required)
    return ", ".join([*slower, *(f"{as_code(each)} **is not met**" for each in unmet)])


def _rules(findings: Sequence[Finding], max_slowdown: float | None) -> list[str]:
    bound = "its bound" if max_slowdown is None else quantity_text.share(max_slowdown, 3)
    required = dict.fromkeys(each.required for each in findings if each.required)
    listed = ", ".join(map(as_code, required))
    shared = ", with one 5 % error rate over all of them" if len(required) > 1 else ""
    return [f"Slowdowns above {bound} fail.", *([f"Required: {listed}{shared}."] if required else [])]


def without_base(name: str, reason: str, *, max_slowdown: float | None) -> str:
    return comment_text(name, [Finding(Status.NOT_COMPARABLE, reason)], [], max_slowdown=max_slowdown)


def _worst(findings: Sequence[Finding]) -> Status:
    """As the gate does with --strict: what is inconclusive is called so, though it may pass."""
    from fairlap.history.gate import overall

    return overall(findings, strict=True)
