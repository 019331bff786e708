"""A solver whose variants do less or other work than they should, one way each; the first one is honest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

from fairlap.frameworks.contract import Contestant, Phase, Settings
from fairlap.frameworks.solvers.scipy import SciPy
from fairlap.frameworks.solvers.solver_library import Solved
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload


class WrongSolver(SciPy):
    name = "wrong"
    packages = ()
    variants: ClassVar = ("", "other-equations", "kept", "no-rates")

    @classmethod
    def solver_for(cls, problem: Any, wanted: Settings) -> str:
        return "LSODA"

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        honest = super().prepare(work, wanted, phase)
        trick = _TRICKS.get(wanted.variant)
        if trick is None:
            return honest
        bind = trick(honest.bind)
        return replace(honest, bind=bind, compilation=lambda: replace(_compilation(honest), bind=bind))


def _compilation(honest: Contestant) -> Any:
    assert honest.compilation is not None
    return honest.compilation()


Bind = Callable[[Arrays], Callable[[], Solved]]


def _other_equations(honest: Bind) -> Bind:
    def bind(arrays: Arrays) -> Callable[[], Solved]:
        call = honest(arrays)

        def solve() -> Solved:
            found = call()
            return found._replace(rates=found.rates * (1 + 1e-9))

        return solve

    return bind


def _kept(honest: Bind) -> Bind:
    """Keep the first answer at each tolerance, with the right rates."""
    ends: dict[float, Any] = {}

    def bind(arrays: Arrays) -> Callable[[], Solved]:
        call = honest(arrays)

        def solve() -> Solved:
            found = call()
            return found._replace(end=ends.setdefault(float(arrays["tolerance"][0]), found.end))

        return solve

    return bind


def _no_rates(honest: Bind) -> Bind:
    def bind(arrays: Arrays) -> Callable[[], Solved]:
        call = honest(arrays)
        return lambda: call()._replace(rates=0.0)

    return bind


_TRICKS: dict[str, Callable[[Bind], Bind]] = {
    "other-equations": _other_equations,
    "kept": _kept,
    "no-rates": _no_rates,
}
