"""What the doctor says in a terminal.

One thing that a look at the machine showed.

All that the judges look at, read once.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fairlap.machine.doctor.observation import Observed
from fairlap.machine.gpu import Gpus
from fairlap.machine.root import Root

Severity = Literal["good", "note", "warning", "bad"]

SEVERITIES: tuple[Severity, ...] = ("good", "note", "warning", "bad")


@dataclass(frozen=True)
class Finding:
    """What was found, what it does to figures, and the command or deed that mends it; both empty where nothing is."""

    name: str
    severity: Severity
    found: str
    effect: str = ""
    mend: str = ""


def exit_status(findings: list[Finding]) -> int:
    """0: fit. 1: something to mind. 2: not fit."""
    worst = max((SEVERITIES.index(finding.severity) for finding in findings), default=0)
    return max(worst - SEVERITIES.index("note"), 0)


@dataclass(frozen=True)
class Examined:
    root: Root
    facts: Mapping[str, str]
    observed: Observed
    gpus: Gpus
    clock: Mapping[str, Any] = field(default_factory=dict)  # the floor of the engine's clock
    clock_absent: str = ""  # why there is none

    @property
    def is_virtual(self) -> bool:
        return self.facts.get("hypervisor") == "yes"


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
