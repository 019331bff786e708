"""The clocks that stamps are taken from.

Who sets the processor's clock.

Clocks above the base clock, given as long as heat and power allow.

Whether cores were slowed down because they got too hot.
"""

from __future__ import annotations

from fairlap.machine.counters import thermal_events
from fairlap.machine.doctor.finding import Examined, Finding
from fairlap.machine.kernel import clock_source, clock_sources
from fairlap.machine.processor import governors, turbo, turbo_gain, turbo_switch
from fairlap.verdict.regression import WORTH

_STEADY = "performance"


def check_governor(seen: Examined) -> list[Finding]:
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


def check_turbo(seen: Examined) -> list[Finding]:
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


def check_heat(seen: Examined) -> list[Finding]:
    ever, now = thermal_events(seen.root), seen.observed.thermal_events
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


_QUICK = frozenset({"tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page"})
_COARSE_QUANTUM_NS = 100.0
_SLOW_OVERHEAD_NS = 200.0


def check_clock(seen: Examined) -> list[Finding]:
    return [*_of_the_kernel(seen), *_of_the_engine(seen)]


def _of_the_kernel(seen: Examined) -> list[Finding]:
    source = clock_source(seen.root)
    if not source or source in _QUICK:
        return [Finding("clock source", "good", source)] if source else []
    mend = "ask the host for a counter that can be trusted"
    if "tsc" in clock_sources(seen.root):
        mend = "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource"
    return [
        Finding(
            "clock source",
            "warning",
            f"the kernel uses {source}, which is read by a system call or from a device",
            "whoever looks at the clock often, frameworks' own profilers and thread pools among them, is slowed down",
            mend,
        )
    ]


def _of_the_engine(seen: Examined) -> list[Finding]:
    if seen.clock_absent:
        return [Finding("timer", "bad", f"no clock to measure with: {seen.clock_absent}")]
    if not seen.clock:
        return []
    quantum, overhead = float(seen.clock["quantum_ns"]), float(seen.clock["overhead_ns"])
    found = f"{seen.clock['source']}: quantum {quantum:.1f} ns, a pair of stamps costs {overhead:.1f} ns"
    distrust = seen.clock.get("counter_distrust")
    if distrust:
        effect = f"the operating system's clock is used: {overhead:.0f} ns for two stamps, in steps of {quantum:.0f} ns"
        return [Finding("timer", "warning", f"the processor's counter is not used: {distrust}", effect)]
    if quantum > _COARSE_QUANTUM_NS or overhead > _SLOW_OVERHEAD_NS:
        effect = f"what takes less than about {10 * max(quantum, overhead) / 1000:.1f} us is known to 10 % at best"
        return [Finding("timer", "warning", found, effect, "compare longer work, such as a larger batch")]
    return [Finding("timer", "good", found)]
