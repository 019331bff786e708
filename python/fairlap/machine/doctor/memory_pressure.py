"""Whether memory is short."""

from __future__ import annotations

from fairlap.machine.doctor.examined import Examined
from fairlap.machine.doctor.finding import Finding
from fairlap.machine.memory import memory_bytes
from fairlap.machine.root import size_text

_WAITED_TOO_LONG = 0.01
_SCARCE_SHARE = 0.1


def judge(seen: Examined) -> list[Finding]:
    told = memory_bytes(seen.root)
    waited = seen.watched.memory_waited_share
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
