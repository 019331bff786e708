"""One answer of a model before it is raced: that it can answer step by step, and what an answer takes at least."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from fairlap.models.sources.python_models.causal_steps import CausalSteps, shapes_of

_MOST_AXES = 2  # of a weight that a step reads all of; those with more are of several experts, of which it needs some


@dataclass(frozen=True)
class TrialAnswer:
    multiplications: int  # of the whole answer
    read_weights: int  # elements that a step reads at least
    cache: list[tuple[int, ...]]  # shapes of its keys and values in the end; none where it holds something else


def trial_answer(steps: CausalSteps, prompt: Any, continuation: Any) -> TrialAnswer:
    read: dict[int, int] = {}
    # Only products that are not part of a fused attention are counted.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        with FlopCounterMode(display=False) as of_prompt:
            _, _, cache = steps.first(prompt)
        with FlopCounterMode(display=False) as of_answer:
            for place in range(continuation.shape[1] - 1):
                _, _, cache = steps.following(cache, continuation[:, [place]])
            with _noting(steps.model, read):
                _, _, cache = steps.following(cache, continuation[:, [-1]])
    # The counter takes the attention of a prompt for whole squares, half of which a causal mask leaves out.
    counted = of_prompt.get_total_flops() - _of_attention(of_prompt) // 2 + of_answer.get_total_flops()
    return TrialAnswer(int(counted) // 2, sum(read.values()), shapes_of(cache))


def _of_attention(counter: FlopCounterMode) -> int:
    counts = counter.get_flop_counts().get("Global", {})
    return sum(int(counts.get(each, 0)) for each in (torch.ops.aten.bmm, torch.ops.aten.baddbmm))


@contextmanager
def _noting(model: Any, read: dict[int, int]) -> Iterator[None]:
    """Note the weights of the modules that are called, but for tables in which they look up rows."""

    def note(module: Any, *_: Any) -> None:
        if not isinstance(module, torch.nn.Embedding):
            own = (each for each in module.parameters(recurse=False) if each.dim() <= _MOST_AXES)
            read.update({id(each): each.numel() for each in own})

    noted = [each.register_forward_hook(note) for each in model.modules()]
    try:
        yield
    finally:
        for each in noted:
            each.remove()
