"""Checks of clocks: what sets the processor's speed, and which clock timestamps come from."""

from __future__ import annotations

from fairlap import quantity_text
from fairlap.machine.doctor.finding import Examined, Finding, Severity
from fairlap.machine.hardware.counters import thermal_events
from fairlap.machine.hardware.kernel import clock_source, clock_sources
from fairlap.machine.hardware.processor import governors, turbo, turbo_gain, turbo_switch
from fairlap.verdict.gates.regression import WORTH

_STEADY = "performance"
_FAST_SOURCES = frozenset({"tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page"})
_COARSE_QUANTUM_NS = 100.0
_SLOW_OVERHEAD_NS = 200.0


def check_governor(seen: Examined) -> list[Finding]:
    found = governors(seen.root)
    if found == [_STEADY]:
        return [Finding("governor", "good", f"{_STEADY} on every core")]
    if found:
        return [
            Finding(
                "governor",
                "warning",
                f"{', '.join(found)}: the clock follows the load",
                "short or bursty work runs at a lower clock than long work; between two runs under different governors "
                f"a difference below {quantity_text.share(WORTH['governor'])} does not count",
                "sudo cpupower frequency-set --governor performance",
            )
        ]
    if seen.is_virtual:
        return [
            Finding(
                "governor",
                "note",
                "not visible in this virtual machine; its host sets the clock",
                "the clock may change without a trace here; contestants that take turns are affected alike",
            )
        ]
    return [Finding("governor", "note", "this kernel does not report what sets the clock")]


def check_turbo(seen: Examined) -> list[Finding]:
    state = turbo(seen.root)
    if state == "off":
        return [Finding("turbo", "good", "off")]
    if state != "on":
        return []  # the finding about a virtual machine's governor covers it
    gain = turbo_gain(seen.root)
    how_far = f"up to {gain:.2f} times the base clock" if gain else "above the base clock"
    return [
        Finding(
            "turbo",
            "warning",
            f"on: the clock may rise {how_far}",
            "a process that follows a pause or uses few cores runs faster than others; everything slows down as the "
            "processor warms up",
            turbo_switch(seen.root),
        )
    ]


def check_thermal(seen: Examined) -> list[Finding]:
    ever, now = thermal_events(seen.root), seen.observed.thermal_events
    if ever is None:
        return []
    if now:
        return [_thermal("bad", f"cores were slowed down {now} times during the examination")]
    if ever:
        return [_thermal("warning", f"cores were slowed down {ever} times since the machine started, but not now")]
    return [Finding("thermal", "good", "no core was ever slowed down by its temperature")]


def _thermal(severity: Severity, found: str) -> Finding:
    return Finding(
        "thermal",
        severity,
        found,
        "the clock falls during a run, so a contestant that runs longer looks slower",
        "better cooling, or a lower clock that can be sustained: sudo cpupower frequency-set --max FREQUENCY",
    )


def check_clock(seen: Examined) -> list[Finding]:
    return [*_kernel_clock(seen), *_engine_clock(seen)]


def _kernel_clock(seen: Examined) -> list[Finding]:
    source = clock_source(seen.root)
    if not source or source in _FAST_SOURCES:
        return [Finding("clock_source", "good", source)] if source else []
    remedy = "ask the host for a trustworthy counter"
    if "tsc" in clock_sources(seen.root):
        remedy = "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource"
    return [
        Finding(
            "clock_source",
            "warning",
            f"the kernel uses {source}, which takes a system call or an access to a device",
            "code that reads the clock often is slowed down, such as profilers and thread pools of frameworks",
            remedy,
        )
    ]


def _engine_clock(seen: Examined) -> list[Finding]:
    if seen.clock_absent:
        return [Finding("timer", "bad", f"no usable clock: {seen.clock_absent}", "nothing can be measured")]
    if not seen.clock:
        return []
    quantum, overhead = float(seen.clock["quantum_ns"]), float(seen.clock["overhead_ns"])
    found = f"{seen.clock['source']}: quantum {quantum:.1f} ns, overhead {overhead:.1f} ns per interval"
    distrust = seen.clock.get("counter_distrust")
    if distrust:
        effect = f"the operating system's clock is used: overhead {overhead:.0f} ns, quantum {quantum:.0f} ns"
        return [Finding("timer", "warning", f"the processor's counter is not used: {distrust}", effect)]
    if quantum > _COARSE_QUANTUM_NS or overhead > _SLOW_OVERHEAD_NS:
        effect = f"times below about {10 * max(quantum, overhead) / 1000:.1f} us are known to 10 % at best"
        return [Finding("timer", "warning", found, effect, "measure longer work, such as a larger batch")]
    return [Finding("timer", "good", found)]
