"""One thing that a look at the machine showed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
