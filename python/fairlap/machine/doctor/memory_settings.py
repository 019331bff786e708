"""Whether memory comes in pages of megabytes without being asked for.

Whether memory is short.

Memory that was moved to a disk.

Whether processes are laid out in memory at random.
"""

from __future__ import annotations

from fairlap.machine.doctor.finding import Examined, Finding
from fairlap.machine.kernel import address_randomisation, memory_bytes
from fairlap.machine.root import size_text

_WAITED_TOO_LONG = 0.01
_SCARCE_SHARE = 0.1


def check_memory_pressure(seen: Examined) -> list[Finding]:
    told = memory_bytes(seen.root)
    waited = seen.observed.memory_waited_share
    total, available = told.get("MemTotal"), told.get("MemAvailable")
    if waited is not None and waited > _WAITED_TOO_LONG:
        return [_finding("bad", f"somebody waited for memory {waited:.0%} of the time")]
    if total and available is not None and available < _SCARCE_SHARE * total:
        return [_finding("warning", f"{size_text(available)} of {size_text(total)} are left")]
    if available is not None:
        return [Finding("memory", "good", f"{size_text(available)} left, and nobody waits for any")]
    return []


def _finding(severity: str, found: str) -> Finding:
    effect = "the kernel stops whoever asks for a page until it has found one; contestants may be ended for it"
    mend = "end what takes the memory (ps aux --sort -rss), or measure smaller batches"
    return Finding("memory", "bad" if severity == "bad" else "warning", found, effect, mend)


def check_swap(seen: Examined) -> list[Finding]:
    told = memory_bytes(seen.root)
    if "SwapTotal" not in told:
        return []
    used, moving = told["SwapTotal"] - told.get("SwapFree", 0), seen.observed.pages_swapped or 0
    if moving:
        return [_finding_swap("bad", f"{moving} pages moved to or from the disk while watching")]
    if used > 0:
        return [_finding_swap("note", f"{size_text(used)} in use, and nothing moves now")]
    return [Finding("swap", "good", "none in use")]


def _finding_swap(severity: str, found: str) -> Finding:
    effect = "a page that comes back from a disk takes thousands of times as long as one in memory"
    mend = "sudo swapoff -a (when memory is enough)"
    return Finding("swap", "bad" if severity == "bad" else "note", found, effect, mend)


_PATH = "/sys/kernel/mm/transparent_hugepage/enabled"


def check_huge_pages(seen: Examined) -> list[Finding]:
    setting = seen.facts.get("huge pages", "")
    if setting == "madvise":
        return [Finding("huge pages", "good", "madvise: those who ask get them, under controlled conditions all do")]
    if setting == "never":
        return [
            Finding(
                "huge pages",
                "warning",
                "never, so asking for them under controlled conditions does nothing",
                "memory that is given back and fetched again comes in pages of 4 KiB; where it is, the same net was "
                "seen to run in two modes 2.1 to 2.7 times apart",
                f"echo madvise | sudo tee {_PATH}",
            )
        ]
    if setting == "always":
        return [
            Finding(
                "huge pages",
                "note",
                "always, also for those who did not ask",
                "as-found figures hold only for machines that are set like this; whether a huge page is at hand "
                "changes from process to process",
                f"echo madvise | sudo tee {_PATH}",
            )
        ]
    return []


def check_address_layout(seen: Examined) -> list[Finding]:
    state = address_randomisation(seen.root)
    if state == "on":
        return [Finding("address randomisation", "good", "on: every process draws its layout anew, as users' do")]
    if not state:
        return []
    return [
        Finding(
            "address randomisation",
            "warning",
            state,
            "every process gets the same layout, lucky or not, and the interval cannot show it; turning it off was "
            "not seen to make figures steadier",
            "sudo sysctl kernel.randomize_va_space=2",
        )
    ]
