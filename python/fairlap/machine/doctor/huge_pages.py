"""Whether memory comes in pages of megabytes without being asked for."""

from __future__ import annotations

from fairlap.machine.doctor.examined import Examined
from fairlap.machine.doctor.finding import Finding

_PATH = "/sys/kernel/mm/transparent_hugepage/enabled"


def judge(seen: Examined) -> list[Finding]:
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
