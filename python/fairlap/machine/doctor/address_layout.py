"""Whether processes are laid out in memory at random."""

from __future__ import annotations

from fairlap.machine.doctor.examined import Examined
from fairlap.machine.doctor.finding import Finding
from fairlap.machine.kernel import address_randomisation


def judge(seen: Examined) -> list[Finding]:
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
