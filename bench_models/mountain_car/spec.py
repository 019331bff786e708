"""A car in a valley that cannot climb out without swinging."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.environments.environment import Components, Environment

_FORCE, _GRAVITY, _FASTEST = 0.001, 0.0025, 0.07
_LEFTMOST, _RIGHTMOST, _GOAL = -1.2, 0.6, 0.5


def advance(state: Components, action: Any, arrays: Any) -> tuple[Components, Any, Any]:
    position, speed = state
    speed = arrays.clip(speed + (action - 1) * _FORCE - arrays.cos(3 * position) * _GRAVITY, -_FASTEST, _FASTEST)
    position = arrays.clip(position + speed, _LEFTMOST, _RIGHTMOST)
    speed = arrays.where((position <= _LEFTMOST) & (speed < 0), 0.0, speed)
    return (position, speed), -1.0, (position >= _GOAL) & (speed >= 0)


def observe(state: Components, _arrays: Any) -> Components:
    return state


IMPLEMENTED_IN = "fairlap.bench_models.environments"
ENVIRONMENT = Environment(
    name="mountain_car",
    task="environment with three actions",
    published="Moore, Efficient memory-based learning for robot control, 1990; MountainCar-v0 of gymnasium",
    advance=advance,
    observe=observe,
    low=(-0.6, 0.0),
    high=(-0.4, 0.0),
    observations=2,
    most_steps=200,
    actions=3,
    gymnasium="MountainCar-v0",
    gymnax="MountainCar-v0",
)
SPEC = ENVIRONMENT.spec()
