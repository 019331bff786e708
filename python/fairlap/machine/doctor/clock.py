"""The clocks that stamps are taken from."""

from __future__ import annotations

from fairlap.machine.doctor.examined import Examined
from fairlap.machine.doctor.finding import Finding
from fairlap.machine.kernel import clock_source, clock_sources

_QUICK = frozenset({"tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page"})
_COARSE_QUANTUM_NS = 100.0
_SLOW_OVERHEAD_NS = 200.0


def judge(seen: Examined) -> list[Finding]:
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
