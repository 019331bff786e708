"""Warnings of one code are one kind: they differ in their numbers only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from fairlap.engine.measurement import Notice


@dataclass
class WarningKind:
    """The first warning of its code, and how many processes of each contestant have one."""

    first: Notice
    by_contestant: Counter[str] = field(default_factory=Counter)


def warning_kinds(warnings: Iterable[tuple[str, Iterable[Notice]]]) -> list[WarningKind]:
    """From pairs of a contestant and the warnings of one process, in which a kind counts once."""
    found: dict[str, WarningKind] = {}
    for contestant, of_process in warnings:
        by_code = {warning.code: warning for warning in reversed(list(of_process))}
        for code, warning in by_code.items():
            found.setdefault(code, WarningKind(warning)).by_contestant[contestant] += 1
    return list(found.values())
