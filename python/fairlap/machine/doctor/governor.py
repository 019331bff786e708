"""Who sets the processor's clock."""

from __future__ import annotations

from fairlap.machine.doctor.examined import Examined
from fairlap.machine.doctor.finding import Finding
from fairlap.machine.frequency import governors
from fairlap.verdict.regression import WORTH

_STEADY = "performance"


def judge(seen: Examined) -> list[Finding]:
    told = governors(seen.root)
    if told == [_STEADY]:
        return [Finding("governor", "good", f"{_STEADY} on every core")]
    if told:
        return [
            Finding(
                "governor",
                "warning",
                f"{', '.join(told)}; the clock follows the load",
                f"short or bursty work runs at a lower clock than long work; two runs under different governors are "
                f"allowed {WORTH['governor']:.0%} before a difference counts",
                "sudo cpupower frequency-set --governor performance",
            )
        ]
    if seen.is_virtual:
        return [
            Finding(
                "governor",
                "note",
                "cannot be read in this virtual machine; its host sets the clock",
                "the clock may move while nothing here shows it; contestants that take turns share the movement",
            )
        ]
    return [Finding("governor", "note", "this kernel does not tell who sets the clock")]
