"""A simulator whose variants do less or other work than they should, one way each; the first one is honest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from fairlap.frameworks.contract import Contestant, Phase, Settings
from fairlap.frameworks.simulators.numpy import NumPy
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload

Bind = Callable[[Arrays], Callable[[], Any]]


class WrongSimulator(NumPy):
    name = "wrong"
    implementation = "numpy"
    packages: ClassVar = ()
    variants: ClassVar = ("", "half-of-the-steps", "same-step", "kept", "other-physics")

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        honest = super().prepare(work, replace(wanted, variant=""), phase)
        trick = _TRICKS.get(wanted.variant)
        return honest if trick is None else replace(honest, bind=trick(honest.bind))


def _half_of_the_steps(honest: Bind) -> Bind:
    """Take half of the steps, and count each twice."""

    def bind(arrays: Arrays) -> Callable[[], Any]:
        call = honest({**arrays, "actions": arrays["actions"][::2]})

        def simulate() -> Any:
            observation, *sums = call()
            return observation, *(2 * each for each in sums)

        return simulate

    return bind


def _same_step(honest: Bind) -> Bind:
    """Leave out the step in which an episode starts over: here, by counting a reward for it."""

    def bind(arrays: Arrays) -> Callable[[], Any]:
        call = honest(arrays)

        def simulate() -> Any:
            observation, observed, returns, episodes = call()
            return observation, observed, returns + episodes, episodes

        return simulate

    return bind


def _kept(honest: Bind) -> Bind:
    found: list[Any] = []

    def bind(arrays: Arrays) -> Callable[[], Any]:
        call = honest(arrays)

        def simulate() -> Any:
            if not found:
                found.append(call())
            return found[0]

        return simulate

    return bind


def _other_physics(honest: Bind) -> Bind:
    def bind(arrays: Arrays) -> Callable[[], Any]:
        return honest({**arrays, "start": (arrays["start"] * np.float32(1 + 1e-3)).astype(np.float32)})

    return bind


_TRICKS: dict[str, Callable[[Bind], Bind]] = {
    "half-of-the-steps": _half_of_the_steps,
    "same-step": _same_step,
    "kept": _kept,
    "other-physics": _other_physics,
}
