"""A pole on a cart that is pushed left or right, with the equations of Barto, Sutton and Anderson without friction."""

from __future__ import annotations

import math
from typing import Any

from fairlap.bench_models.environments.environment import Components, Environment
from fairlap.models.modes import AGENTS

_GRAVITY, _FORCE, _STEP_S = 9.8, 10.0, 0.02
_POLE_MASS, _MASS, _HALF_LENGTH = 0.1, 1.1, 0.5
_FARTHEST, _STEEPEST = 2.4, 12 * 2 * math.pi / 360


def advance(state: Components, action: Any, arrays: Any) -> tuple[Components, Any, Any]:
    position, speed, angle, turning = state
    sine, cosine = arrays.sin(angle), arrays.cos(angle)
    push = (2 * _FORCE * action - _FORCE + _POLE_MASS * _HALF_LENGTH * turning * turning * sine) / _MASS
    turned = (_GRAVITY * sine - cosine * push) / (_HALF_LENGTH * (4.0 / 3.0 - _POLE_MASS * cosine * cosine / _MASS))
    moved = push - _POLE_MASS * _HALF_LENGTH * turned * cosine / _MASS
    found = (
        position + _STEP_S * speed,
        speed + _STEP_S * moved,
        angle + _STEP_S * turning,
        turning + _STEP_S * turned,
    )
    return found, 1.0, (abs(found[0]) > _FARTHEST) | (abs(found[2]) > _STEEPEST)


def observe(state: Components, _arrays: Any) -> Components:
    return state


IMPLEMENTED_IN = "fairlap.bench_models.environments"
ENVIRONMENT = Environment(
    name="cartpole",
    task="environment with two actions",
    published="Barto, Sutton and Anderson, Neuronlike adaptive elements, 1983; CartPole-v1 of gymnasium",
    advance=advance,
    observe=observe,
    low=(-0.05,) * 4,
    high=(0.05,) * 4,
    observations=4,
    most_steps=500,
    actions=2,
    gymnasium="CartPole-v1",
    gymnax="CartPole-v1",
    learned_by=AGENTS,
)
SPEC = ENVIRONMENT.spec()
