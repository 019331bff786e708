"""Memory that was moved to a disk."""

from __future__ import annotations

from fairlap.machine.doctor.examined import Examined
from fairlap.machine.doctor.finding import Finding
from fairlap.machine.memory import memory_bytes
from fairlap.machine.root import size_text


def judge(seen: Examined) -> list[Finding]:
    told = memory_bytes(seen.root)
    if "SwapTotal" not in told:
        return []
    used, moving = told["SwapTotal"] - told.get("SwapFree", 0), seen.watched.pages_swapped or 0
    if moving:
        return [_finding("bad", f"{moving} pages moved to or from the disk while watching")]
    if used > 0:
        return [_finding("note", f"{size_text(used)} in use, and nothing moves now")]
    return [Finding("swap", "good", "none in use")]


def _finding(severity: str, found: str) -> Finding:
    effect = "a page that comes back from a disk takes thousands of times as long as one in memory"
    mend = "sudo swapoff -a (when memory is enough)"
    return Finding("swap", "bad" if severity == "bad" else "note", found, effect, mend)
