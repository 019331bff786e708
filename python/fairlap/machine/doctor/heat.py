"""Whether cores were slowed down because they got too hot."""

from __future__ import annotations

from fairlap.machine.doctor.examined import Examined
from fairlap.machine.doctor.finding import Finding
from fairlap.machine.doctor.watching import thermal_events


def judge(seen: Examined) -> list[Finding]:
    ever, now = thermal_events(seen.root), seen.watched.thermal_events
    if ever is None:
        return []
    if now:
        return [_finding("bad", f"cores were slowed down {now} times while watching")]
    if ever:
        return [_finding("warning", f"cores were slowed down {ever} times since the machine started, and not now")]
    return [Finding("heat", "good", "no core was ever slowed down for it")]


def _finding(severity: str, found: str) -> Finding:
    effect = "the clock falls in the middle of a run; the longer somebody runs, the slower he looks"
    mend = "better cooling, or a lower clock that can be held: sudo cpupower frequency-set --max FREQUENCY"
    return Finding("heat", "bad" if severity == "bad" else "warning", found, effect, mend)
