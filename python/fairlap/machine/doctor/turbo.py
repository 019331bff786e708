"""Clocks above the base clock, given as long as heat and power allow."""

from __future__ import annotations

from fairlap.machine.doctor.examined import Examined
from fairlap.machine.doctor.finding import Finding
from fairlap.machine.frequency import turbo, turbo_gain, turbo_switch


def judge(seen: Examined) -> list[Finding]:
    state = turbo(seen.root)
    if state == "off":
        return [Finding("turbo", "good", "off")]
    if state != "on":
        return []  # a virtual machine's governor finding says already that its host sets the clock
    gain = turbo_gain(seen.root)
    how_far = f"up to {gain:.2f} times the base clock" if gain else "above the base clock"
    return [
        Finding(
            "turbo",
            "warning",
            f"on; the clock may rise {how_far}",
            "a process that follows a pause or uses few cores runs faster than one that does not; figures sink as "
            "the processor warms up",
            turbo_switch(seen.root),
        )
    ]
