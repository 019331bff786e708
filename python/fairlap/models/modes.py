"""What the modes of a call ask of a model, and who runs and proves them: all that is said of a mode is here.

A room asks these facts, and never which mode it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from fairlap.request.work import AgentMode, Mode


@dataclass(frozen=True)
class ModeFacts:
    proof: str  # the module and class, a ModeSide, that proves answers right
    # Of the frameworks that infer, differentiate and train: those that call the code of a model for this mode too.
    in_frameworks: tuple[str, ...] = ()
    # A gradient has the products of an inference, those of the slopes by activations, and those by weights.
    inferences: int = 1
    # It needs at least another inference's worth: that of the loss by the weights.
    fewest_inferences: int = 1
    batches_have_labels: bool = False  # each batch its own; otherwise labels, if any, stay the same
    is_fed: bool = True  # whether calls can be fed
    gives_outputs: bool = True  # those of the model
    first_answer: str = "inference"
    trains: bool = False  # by the optimizer of the work
    differentiates: bool = False  # a function: its call is a derivative, without a loss
    acts: bool = False  # an agent: its call is an update, and it learns from what its actions bring about
    shared_by_ranks: bool = False  # each with its part of the batch

    @property
    def answers_inputs(self) -> bool:
        """Whether a call is given inputs that a user has, and returns what the model makes of them."""
        return self.is_fed and self.gives_outputs

    @property
    def holds_labels(self) -> bool:
        """Whether its calls are compiled with the labels of one batch."""
        return not self.gives_outputs and not self.batches_have_labels


DERIVATIVES: tuple[Mode, ...] = ("jvp", "vjp", "hvp", "hessian", "jacobian", "third", "per-sample")

AGENTS: tuple[AgentMode, ...] = get_args(AgentMode)

_CALLS, _SCENARIOS = "fairlap.scenarios.calls.race", "fairlap.scenarios"
_INFERENCE = f"{_CALLS}.inference:Inference"
_ARRAY_LIBRARIES = ("torch", "jax")

MODES: Mapping[Mode, ModeFacts] = {
    "infer": ModeFacts(_INFERENCE, shared_by_ranks=True),
    "grad": ModeFacts(
        f"{_CALLS}.gradients:Gradients",
        inferences=3,
        fewest_inferences=2,
        is_fed=False,
        gives_outputs=False,
        first_answer="gradient",
    ),
    "train": ModeFacts(
        f"{_CALLS}.steps:Steps",
        inferences=3,
        fewest_inferences=2,
        batches_have_labels=True,
        gives_outputs=False,
        trains=True,
        shared_by_ranks=True,
    ),
    "solve": ModeFacts(f"{_SCENARIOS}.solving.race.solutions:Solutions", is_fed=False),
    "solve-grad": ModeFacts(
        f"{_SCENARIOS}.solving.race.gradients_through:GradientsThrough", is_fed=False, first_answer="gradient"
    ),
    "simulate": ModeFacts(f"{_SCENARIOS}.simulating.race.trajectories:Trajectories", _ARRAY_LIBRARIES, is_fed=False),
    **dict.fromkeys(
        AGENTS, ModeFacts(f"{_SCENARIOS}.agents.race.updates:Updates", _ARRAY_LIBRARIES, is_fed=False, acts=True)
    ),
    **dict.fromkeys(
        DERIVATIVES, ModeFacts(_INFERENCE, (*_ARRAY_LIBRARIES, "tensorflow"), is_fed=False, differentiates=True)
    ),
}


def modes_in(framework: str) -> tuple[Mode, ...]:
    """Find the further modes for which this framework calls the code of a model."""
    return tuple(mode for mode, facts in MODES.items() if framework in facts.in_frameworks)
