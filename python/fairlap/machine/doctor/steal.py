"""Time that the host of a virtual machine gave to others."""

from __future__ import annotations

from fairlap.machine.doctor.examined import Examined
from fairlap.machine.doctor.finding import Finding
from fairlap.machine.virtualisation import steal_since_boot

_TOO_MUCH = 0.02  # the share above which a race leaves a block out
_FAR_TOO_MUCH = 0.10


def judge(seen: Examined) -> list[Finding]:
    now, ever = seen.watched.steal_share, steal_since_boot(seen.root)
    if not seen.is_virtual or now is None:
        return []
    so_far = f", {ever:.1%} since it started" if ever is not None else ""
    if max(now, ever or 0.0) <= _TOO_MUCH:
        return [Finding("stolen time", "good", f"{now:.1%} now{so_far}")]
    return [
        Finding(
            "stolen time",
            "bad" if now > _FAR_TOO_MUCH else "warning",
            f"the host keeps {now:.1%} of the time now{so_far}",
            f"a race leaves out blocks with more than {_TOO_MUCH:.0%}; fewer are left, and the interval is wider",
            "measure on a host of your own, on another size of machine, or at another time",
        )
    ]
