"""Checks of memory: shortage, swap, huge pages, and the random layout of processes."""

from __future__ import annotations

from fairlap import quantity_text
from fairlap.machine.doctor.finding import Examined, Finding, Severity
from fairlap.machine.hardware.kernel import address_randomisation, memory_bytes

_WAITED_TOO_LONG = 0.01
_SCARCE_SHARE = 0.1
_HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"


def check_memory_pressure(seen: Examined) -> list[Finding]:
    memory = memory_bytes(seen.root)
    waited = seen.observed.memory_waited_share
    total, available = memory.get("MemTotal"), memory.get("MemAvailable")
    if waited is not None and waited > _WAITED_TOO_LONG:
        return [_memory("bad", f"tasks waited for memory {quantity_text.share(waited)} of the time")]
    if total and available is not None and available < _SCARCE_SHARE * total:
        return [_memory("warning", f"{quantity_text.size(available)} of {quantity_text.size(total)} are available")]
    if available is not None:
        return [Finding("memory", "good", f"{quantity_text.size(available)} available, and no task waits for memory")]
    return []


def _memory(severity: Severity, found: str) -> Finding:
    return Finding(
        "memory",
        severity,
        found,
        "a task that needs a page waits until the kernel has freed one; the kernel may end contestants",
        "end processes that use much memory (ps aux --sort -rss), or measure smaller batches",
    )


def check_swap(seen: Examined) -> list[Finding]:
    memory = memory_bytes(seen.root)
    if "SwapTotal" not in memory:
        return []
    used, moved = memory["SwapTotal"] - memory.get("SwapFree", 0), seen.observed.pages_swapped or 0
    if moved:
        return [_swap("bad", f"{moved} pages moved to or from the disk during the examination")]
    if used > 0:
        return [_swap("note", f"{quantity_text.size(used)} in use, but no page moves now")]
    return [Finding("swap", "good", "not in use")]


def _swap(severity: Severity, found: str) -> Finding:
    return Finding(
        "swap",
        severity,
        found,
        "reading a page back from a disk takes thousands of times as long as reading it from memory",
        "sudo swapoff -a (if there is enough memory)",
    )


def check_huge_pages(seen: Examined) -> list[Finding]:
    setting = seen.facts.get("huge pages", "")
    remedy = f"echo madvise | sudo tee {_HUGE_PAGES}"
    if setting == "madvise":
        return [Finding("huge_pages", "good", "madvise: on request; under controlled conditions every process asks")]
    if setting == "never":
        return [
            Finding(
                "huge_pages",
                "warning",
                "never: requests for them under controlled conditions have no effect",
                "memory that is freed and allocated again comes in pages of 4 KiB; depending on where they are, the "
                "same network ran in two modes 2.1 to 2.7 times apart",
                remedy,
            )
        ]
    if setting == "always":
        return [
            Finding(
                "huge_pages",
                "note",
                "always: also without a request",
                "as-found results hold only for machines with this setting; whether a huge page is free varies "
                "between processes",
                remedy,
            )
        ]
    return []


def check_address_layout(seen: Examined) -> list[Finding]:
    state = address_randomisation(seen.root)
    if state == "on":
        return [Finding("address_randomisation", "good", "on: every process has a new layout, as users' processes do")]
    if not state:
        return []
    return [
        Finding(
            "address_randomisation",
            "warning",
            state,
            "every process has the same layout, lucky or not, and the interval cannot show it; turning it off did not "
            "make results steadier",
            "sudo sysctl kernel.randomize_va_space=2",
        )
    ]
