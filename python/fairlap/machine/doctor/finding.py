"""What the doctor looks at, and what it finds, as text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fairlap.machine.doctor.observation import Observed
from fairlap.machine.hardware.gpu import Gpus
from fairlap.machine.root import Root

Severity = Literal["good", "note", "warning", "bad"]

SEVERITIES: tuple[Severity, ...] = ("good", "note", "warning", "bad")


@dataclass(frozen=True)
class Finding:
    """What a check found, its effect on measurements, and the remedy; the last two are empty where all is well.

    ``check`` is stable, and means the same in every version: ``governor``, ``gpu_clocks``. ``code`` is its section of
    codes.md, ``W_DOCTOR_GOVERNOR``; empty where all is well.
    """

    check: str
    severity: Severity
    found: str
    effect: str = ""
    remedy: str = ""  # a command, where there is one
    gpu: int | None = None  # the device, of a check of GPUs
    code: str = field(init=False)

    def __post_init__(self) -> None:
        code = "" if self.severity == "good" else f"W_DOCTOR_{self.check.upper()}"
        object.__setattr__(self, "code", code)  # the instance is frozen

    @property
    def name(self) -> str:
        """``gpu 0 clocks``."""
        words = self.check.split("_")
        return " ".join(words if self.gpu is None else [words[0], str(self.gpu), *words[1:]])


@dataclass(frozen=True)
class Examined:
    """Everything that the checks look at, read once."""

    root: Root
    facts: Mapping[str, str]
    observed: Observed
    gpus: Gpus
    clock: Mapping[str, Any] = field(default_factory=dict)  # the floor of the engine's clock
    clock_absent: str = ""  # why there is none

    @property
    def is_virtual(self) -> bool:
        return self.facts.get("hypervisor") == "yes"


def exit_status(findings: list[Finding]) -> int:
    """0: fit. 1: there are warnings. 2: not fit."""
    worst = max((SEVERITIES.index(finding.severity) for finding in findings), default=0)
    return max(worst - SEVERITIES.index("note"), 0)


_MARKS = {"good": "ok", "note": "note", "warning": "warning", "bad": "BAD"}
_SUMMARY = ("is fit to measure on", "can be measured on; see the warnings", "is not fit to measure on")
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
        if finding.remedy:
            lines.append(f"{margin}remedy  {finding.remedy}")  # a command is not broken, so that it can be copied
    return "\n".join(lines)


def _wrapped(head: str, text: str) -> list[str]:
    lines = textwrap.wrap(text, max(_WIDTH - len(head), 40), break_long_words=False, break_on_hyphens=False) or [""]
    return [head + lines[0], *(" " * len(head) + line for line in lines[1:])]
