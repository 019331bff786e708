"""How a model is trained: the optimizer and the schedule of its learning rate, written as ``adamw:lr=0.001``.

The formulas are fixed, since two libraries may mean different ones by the same name:

SGD      buffer = momentum * buffer + (gradient + decay * weight);  weight -= rate * buffer
AdamW    weight -= rate * decay * weight;  mean and square are corrected for their start at zero;
         weight -= rate * mean / (sqrt(square) + epsilon)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.suggestions import not_one_of

STEPS_OF_AN_ANSWER = 3
"""From the weights that were given, on the inputs that take turns: the second step needs what the first one kept."""

_MOST_STEPS = 10**9
_LARGEST_RATE = 1e30  # float32 has it

ScheduleKind = Literal["constant", "cosine", "linear"]


class Schedule(msgspec.Struct, frozen=True):
    """What the learning rate is multiplied by at each step.

    From near 0 to 1 over the warm-up, then along the curve down to ``floor`` at ``steps``.
    """

    kind: ScheduleKind = "constant"
    warmup: int = 0
    steps: int = 0
    floor: float = 0.0

    def at(self, step: int) -> float:
        """``step`` counts from 0."""
        if step < self.warmup:
            return (step + 1) / self.warmup
        if self.kind == "constant":
            return 1.0
        done = min(1.0, (step - self.warmup) / max(1, self.steps - self.warmup))
        left = 1.0 - done if self.kind == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))
        return self.floor + (1.0 - self.floor) * left

    @property
    def is_constant(self) -> bool:
        return self.kind == "constant" and not self.warmup

    def at_traced(self, step: Any, library: Any) -> Any:
        """Compute the factor of a step that is an array.

        ``library`` is jax.numpy, tensorflow or another with NumPy's names.
        """
        times: Any = 1.0
        if self.kind != "constant":
            done = library.minimum(1.0, (step - self.warmup) / max(1, self.steps - self.warmup))
            left = 1.0 - done if self.kind == "linear" else 0.5 * (1.0 + library.cos(math.pi * done))
            times = self.floor + (1.0 - self.floor) * left
        return library.where(step < self.warmup, (step + 1) / self.warmup, times) if self.warmup else times

    @property
    def text(self) -> str:
        return _text(self.kind, self, self.__class__(self.kind))


class Sgd(msgspec.Struct, frozen=True, tag="sgd"):
    lr: float = 0.01
    momentum: float = 0.0
    decay: float = 0.0

    @property
    def text(self) -> str:
        return _text("sgd", self)


class AdamW(msgspec.Struct, frozen=True, tag="adamw"):
    lr: float = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    decay: float = 0.01

    @property
    def text(self) -> str:
        return _text("adamw", self)


Optimizer = Sgd | AdamW


class Training(msgspec.Struct, frozen=True):
    """How every contestant trains."""

    optimizer: Optimizer
    schedule: Schedule = Schedule()

    @property
    def text(self) -> str:
        schedule = "" if self.schedule == Schedule() else f" {self.schedule.text}"
        return f"{self.optimizer.text}{schedule}"

    def rate_at(self, step: int) -> float:
        return self.optimizer.lr * self.schedule.at(step)


def optimizer_in(text: str) -> Optimizer:
    kinds: dict[str, Callable[..., Optimizer]] = {"sgd": Sgd, "adamw": AdamW}
    optimizer: Optimizer = _read(text, kinds, "optimizer", "adamw:lr=0.001,decay=0.01")
    _require(0 < optimizer.lr <= _LARGEST_RATE, text, f"lr must be above 0 and at most {_LARGEST_RATE:g}")
    _require(optimizer.decay >= 0, text, "decay must be 0 or more")
    if isinstance(optimizer, Sgd):
        _require(0 <= optimizer.momentum < 1, text, "momentum must be from 0 to below 1")
    else:
        betas = 0 <= optimizer.beta1 < 1 and 0 <= optimizer.beta2 < 1
        _require(
            betas and optimizer.epsilon > 0, text, "beta1 and beta2 must be from 0 to below 1, and epsilon above 0"
        )
    return optimizer


def schedule_in(text: str) -> Schedule:
    kinds = {kind: _schedule_of(kind) for kind in ScheduleKind.__args__}  # type: ignore[attr-defined]
    schedule: Schedule = _read(text, kinds, "schedule", "cosine:steps=1000,warmup=100")
    _require(schedule.warmup >= 0 and 0 <= schedule.floor <= 1, text, "warmup must be 0 or more, and floor from 0 to 1")
    if schedule.kind != "constant":
        _require(schedule.steps > schedule.warmup, text, "steps is needed, and must be more than warmup")
    return schedule


def _schedule_of(kind: ScheduleKind) -> Callable[..., Schedule]:
    def made(**settings: Any) -> Schedule:
        for name, value in settings.items():
            if name != "floor" and (value != int(value) or value > _MOST_STEPS):
                raise InvalidRequest(
                    f"{name}={value:g}: {name} must be a whole number of steps, at most {_MOST_STEPS:,}"
                )
        whole = {name: int(value) if name != "floor" else value for name, value in settings.items()}
        return Schedule(kind, **whole)

    return made


def _read(text: str, kinds: dict[str, Callable[..., Any]], what: str, example: str) -> Any:
    kind, _, rest = text.strip().partition(":")
    if kind not in kinds:
        raise InvalidRequest(f"{what}, such as {example}: {not_one_of(kind, kinds)}")
    settings: dict[str, float] = {}
    for part in filter(None, rest.split(",")):
        name, equals, value = part.partition("=")
        if name.strip() in settings:
            raise InvalidRequest(f"{text!r} has {name.strip()} twice")
        try:
            settings[name.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals or not math.isfinite(settings[name.strip()]):
            raise InvalidRequest(f"{part!r} in {text!r} is not a setting; write {example}")
    try:
        return kinds[kind](**settings)
    except TypeError:
        raise InvalidRequest(f"{text!r} has a setting that {kind} does not have; write {example}") from None


def _require(condition: bool, text: str, rule: str) -> None:
    if not condition:
        raise InvalidRequest(f"{text!r}: {rule}")


def _text(kind: str, value: Any, plain: Any = None) -> str:
    """With the settings that differ from the plain ones."""
    plain = type(value)() if plain is None else plain
    differ = [
        f"{name}={getattr(value, name):g}"
        for name in value.__struct_fields__
        if name != "kind" and (name == "lr" or getattr(value, name) != getattr(plain, name))
    ]
    return f"{kind}:{','.join(differ)}" if differ else kind
