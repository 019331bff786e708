"""What the doctor says in a terminal."""

from __future__ import annotations

import textwrap

from fairlap.machine.doctor.finding import Finding, exit_status

_MARKS = {"good": "ok", "note": "note", "warning": "warning", "bad": "BAD"}
_SUMMARY = ("is fit to measure on", "can be measured on; mind the warnings", "is not fit to measure on as it is")
_WIDTH = 110


def findings_text(findings: list[Finding]) -> str:
    width = max((len(finding.name) for finding in findings), default=0)
    lines = [f"This machine {_SUMMARY[exit_status(findings)]}."]
    for finding in findings:
        mark = _MARKS[finding.severity]
        lines += _wrapped(f"{mark:<8}{finding.name:<{width}}  ", finding.found)
        margin = " " * (8 + width + 2)
        if finding.effect:
            lines += _wrapped(f"{margin}effect  ", finding.effect)
        if finding.mend:
            lines.append(f"{margin}mend    {finding.mend}")  # a command is not broken, so that it can be copied
    return "\n".join(lines)


def _wrapped(head: str, text: str) -> list[str]:
    told = textwrap.wrap(text, max(_WIDTH - len(head), 40), break_long_words=False, break_on_hyphens=False) or [""]
    return [head + told[0], *(" " * len(head) + line for line in told[1:])]
