"""Trials of the fastest arithmetic, and of reading and writing memory, on one or several threads at once."""

from __future__ import annotations

from dataclasses import dataclass, field

from fairlap.engine import _native
from fairlap.errors import NotAvailable


@dataclass(frozen=True)
class Team:
    """Threads that work at once; each stays on its core, or with no cores where the system puts it."""

    threads: int
    cores: tuple[int, ...] = ()


@dataclass
class Trials:
    """Trials of the kernel that was the fastest here; ``rates`` are operations or bytes per second."""

    instructions: str
    _trials: _native.RoofTrials | _native.DeviceRoofTrials | _native.CopyTrials
    rates: list[float] = field(default_factory=list)

    def take(self, seconds: float) -> None:
        self.rates += self._trials.rates(seconds)

    def roof(self) -> _native.RoofEstimate:
        """Estimate the rate that one in twenty trials exceeds, because whatever disturbs a trial slows it down."""
        return _native.roof_of(self.rates)


def instructions_for(number_type: str) -> list[str]:
    """Those of this processor that are measured, from the narrowest; none where it has none."""
    return list(_native.arithmetic_instructions(number_type))


def arithmetic_trials(number_type: str, team: Team) -> Trials:
    """Multiply-adds of this number type in registers; each counts as two operations.

    Those of bf16 may be made in fp32, as libraries do: some processors are slower with their instructions for bf16.
    """
    own = instructions_for(number_type)
    if not own:
        raise NotAvailable(f"this processor has no instructions for {number_type} that fairlap measures")
    number_types = ["bf16", "fp32"] if number_type == "bf16" else [number_type]
    trials = _native.arithmetic_trials(number_types, team.threads, list(team.cores))
    widened = "" if trials.instructions in own else ", widened to fp32"
    return Trials(trials.instructions + widened, trials)


def triad_trials(bytes_per_thread: int, team: Team, *, in_caches: bool) -> Trials:
    """Time ``a = b + s * c`` over three arrays of together so many bytes; as in STREAM an element counts as 24 bytes.

    Only in memory the stores may bypass the caches, if that is faster.
    """
    trials = _native.triad_trials(bytes_per_thread, in_caches, team.threads, list(team.cores))
    return Trials(trials.instructions, trials)
