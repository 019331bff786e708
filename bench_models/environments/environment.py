"""An environment of reinforcement learning: how a step moves its state, what is observed, and when an episode ends.

It is a model whose call starts a batch of environments from drawn states and takes ``STEPS`` steps of drawn actions in
each. An episode ends where the physics end it or after its most steps. As in gymnasium since 1.1, the step after that
ignores its action, has no reward, and puts the environment back to where it started ("next-step" autoreset).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

from fairlap.bench_models.agents.algorithm import algorithm_of
from fairlap.models.spec import BATCH, Constant, Integers, Spec, Tensor, Tolerance, Uniform
from fairlap.request.work import Mode, Precision

STEPS = 256
"""Of each environment in a call: more than an episode of Pendulum or MountainCar has, so that all of them restart."""

START, ACTIONS = "start", "actions"
"""The inputs: where each component of the state starts, as a share of its range, and the actions of all steps."""

OBSERVATION, OBSERVED, RETURNS, EPISODES = "observation", "observed", "returns", "episodes"
"""The outputs: the last observation, the sum of all, the sum of the rewards, and how many episodes ended."""

LOST: Mapping[Precision, float] = {"fp64": 1e-5, "fp32": 1e-3}
"""The share of its size that an output may be off: in fp64 by the float32 of observations and of their sums."""

Components = tuple[Any, ...]
Advance = Callable[[Components, Any, Any], tuple[Components, Any, Any]]


@dataclass(frozen=True)
class Environment:
    """``advance`` takes the state, the actions and the module of their arrays: numpy, jax.numpy or torch.

    It gives the next state, the rewards and which episodes end. Components of the state, and the actions, are arrays of
    the state's type with an element for each environment. ``observe`` gives the components of an observation, which is
    float32 whatever the type of the state is, as in gymnasium.
    """

    name: str
    task: str
    published: str
    advance: Advance
    observe: Callable[[Components, Any], Components]
    low: tuple[float, ...]  # of each component of the state at the start
    high: tuple[float, ...]
    observations: int  # numbers in one
    most_steps: int  # in an episode
    actions: int = 0  # how many there are to choose from; 0 where an action is a number
    largest_action: float = 0.0
    size: float = 1.0  # of an observation
    gymnasium: str = ""  # its name there
    gymnax: str = ""
    learned_by: tuple[Mode, ...] = ()  # the algorithms of the agents that learn in it

    def spec(self) -> Spec:
        drawn = Integers(0, self.actions) if self.actions else Uniform(-self.largest_action, self.largest_action)
        seen = (BATCH, self.observations)
        return Spec(
            name=self.name,
            task=self.task,
            inputs=(
                Tensor(START, (BATCH, len(self.low)), Uniform(0.0, 1.0)),
                Tensor(ACTIONS, (STEPS, BATCH), drawn, "int32" if self.actions else "float32"),
            ),
            outputs=(
                Tensor(OBSERVATION, seen, Constant(0.0)),
                Tensor(OBSERVED, seen, Constant(0.0)),
                Tensor(RETURNS, (BATCH,), Constant(0.0)),
                Tensor(EPISODES, (BATCH,), Constant(0.0)),
            ),
            weights=(),
            parameters=0,
            gmacs_per_item=None,
            published=self.published,
            modes=("simulate", *self.learned_by),
            precisions=("fp64", "fp32"),
            tolerances={precision: Tolerance(-1.0, share * self.size, share) for precision, share in LOST.items()},
            default_batch=64,
            interfaces={
                mode: algorithm_of(mode).interface_of(self.observations, self.actions) for mode in self.learned_by
            },
        )

    def starts(self, shares: Any) -> list[Any]:
        """Give each component of the state at the start, in any library."""
        ranges = zip(self.low, self.high, strict=True)
        return [low + shares[:, place] * (high - low) for place, (low, high) in enumerate(ranges)]


class Rollouts(NamedTuple):
    """The state of all environments between two steps."""

    components: Components
    elapsed: Any  # steps of the episode
    ended: Any  # whether the next step starts over


def step(environment: Environment, first: Components, at: Rollouts, action: Any, arrays: Any) -> tuple[Rollouts, Any]:
    """Take a step in every environment; give its rewards too."""
    moved, reward, over = environment.advance(at.components, action, arrays)
    elapsed = arrays.where(at.ended, 0, at.elapsed + 1)
    components = tuple(arrays.where(at.ended, *both) for both in zip(first, moved, strict=True))
    ended = ~at.ended & (over | (elapsed >= environment.most_steps))
    return Rollouts(components, elapsed, ended), arrays.where(at.ended, 0.0, reward)


class OfEnvironment:
    """What the implementations in all libraries have."""

    agents: ClassVar[str] = ""  # the file of an algorithm with the agents that learn in it; none where none do

    def __init__(self, spec: ModuleType) -> None:
        self.environment: Environment = spec.ENVIRONMENT
        self.state_type = "float64"

    def in_mode(self, mode: Mode) -> Any:
        """Give the agent that learns in the environment, in a mode that is the name of its algorithm."""
        if mode == "simulate":
            return self
        found = import_module(f"fairlap.bench_models.agents.{mode}.{self.agents}")
        return found.Implementation(self.environment)

    def hold_in(self, precision: Precision) -> None:
        self.state_type = {"fp64": "float64", "fp32": "float32"}[precision]
