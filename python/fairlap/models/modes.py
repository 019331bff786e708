"""What the modes of a call ask of a model. A room asks these facts, and never which mode it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from fairlap.request.work import AgentMode, Mode


@dataclass(frozen=True)
class ModeFacts:
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


DERIVATIVES: tuple[Mode, ...] = ("jvp", "vjp", "hvp", "hessian", "jacobian", "third", "per-sample")

AGENTS: tuple[AgentMode, ...] = get_args(AgentMode)

MODES: Mapping[Mode, ModeFacts] = {
    "infer": ModeFacts(),
    "grad": ModeFacts(inferences=3, fewest_inferences=2, is_fed=False, gives_outputs=False, first_answer="gradient"),
    "train": ModeFacts(inferences=3, fewest_inferences=2, batches_have_labels=True, gives_outputs=False, trains=True),
    "solve": ModeFacts(is_fed=False),
    "solve-grad": ModeFacts(is_fed=False, first_answer="gradient"),
    "simulate": ModeFacts(is_fed=False),
    **dict.fromkeys(AGENTS, ModeFacts(is_fed=False, acts=True)),
    **dict.fromkeys(DERIVATIVES, ModeFacts(is_fed=False, differentiates=True)),
}
