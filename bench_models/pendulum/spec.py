"""A pendulum that is turned by a torque, and loses reward the farther it is from standing still upright."""

from __future__ import annotations

import math
from typing import Any

from fairlap.bench_models.environments.environment import Components, Environment

_GRAVITY, _MASS, _LENGTH, _STEP_S = 10.0, 1.0, 1.0, 0.05
_FASTEST, _LARGEST_TORQUE = 8.0, 2.0


def advance(state: Components, torque: Any, arrays: Any) -> tuple[Components, Any, Any]:
    angle, turning = state
    from_upright = (angle + math.pi) % (2 * math.pi) - math.pi
    cost = from_upright * from_upright + 0.1 * turning * turning + 0.001 * torque * torque
    turned = 3 * _GRAVITY / (2 * _LENGTH) * arrays.sin(angle) + 3.0 / (_MASS * _LENGTH**2) * torque
    faster = arrays.clip(turning + _STEP_S * turned, -_FASTEST, _FASTEST)
    return (angle + _STEP_S * faster, faster), -cost, False


def observe(state: Components, arrays: Any) -> Components:
    angle, turning = state
    return arrays.cos(angle), arrays.sin(angle), turning


IMPLEMENTED_IN = "fairlap.bench_models.environments"
ENVIRONMENT = Environment(
    name="pendulum",
    task="environment with a torque",
    published="Pendulum-v1 of gymnasium",
    advance=advance,
    observe=observe,
    low=(-math.pi, -1.0),
    high=(math.pi, 1.0),
    observations=3,
    most_steps=200,
    largest_action=_LARGEST_TORQUE,
    size=_FASTEST,
    gymnasium="Pendulum-v1",
    gymnax="Pendulum-v1",
)
SPEC = ENVIRONMENT.spec()
