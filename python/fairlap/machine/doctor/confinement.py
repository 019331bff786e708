"""The check of what this kernel confines processes with that read models of others."""

from __future__ import annotations

from fairlap.machine.doctor.finding import Examined, Finding
from fairlap.machine.sandbox import has_seccomp, landlock_version

_WHOLE = 3  # the first version that refuses to truncate files too


def check_sandbox(seen: Examined) -> list[Finding]:
    if not seen.root.is_this_machine:
        return []
    version, filters = landlock_version(), has_seccomp()
    lacking = []
    if version == 0:
        lacking.append("no Landlock, so it reaches the files of this user")
    elif version < _WHOLE:
        lacking.append(f"Landlock {version}, so it can truncate files of this user")
    if not filters:
        lacking.append("no seccomp filters, so it reaches the network and starts programs")
    if not lacking:
        return [Finding("sandbox", "good", f"Landlock {version} and seccomp confine what reads a model of others")]
    return [
        Finding(
            "sandbox",
            "note",
            "; ".join(lacking),
            "a model that is opened without --trust is kept from running code by the checks of its kind alone",
            "Linux 6.2 or later with landlock in /sys/kernel/security/lsm, or open such models in a container",
        )
    ]
