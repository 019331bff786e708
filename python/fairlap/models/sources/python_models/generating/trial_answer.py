"""One answer of a model before it is raced: that it can answer step by step, and what an answer takes at least."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from fairlap.models.sources.python_models.generating.cached_steps import CachedSteps, shapes_of

_MOST_AXES = 2  # of a weight that a step reads all of; those with more are of several experts, of which it needs some

Shapes = list[tuple[int, ...]]


@dataclass(frozen=True)
class TrialAnswer:
    multiplications: int  # of the whole answer
    read_weights: int  # elements that the whole answer reads at least, those of a step once in each step
    caches: tuple[Shapes, ...]  # of keys and values in the end, by cache; none of one that holds something else
    vocabulary: int  # logits of a token


def trial_answer(steps: CachedSteps, prompt: Any, continuation: Any) -> TrialAnswer:
    of_first: dict[int, int] = {}
    of_last: dict[int, int] = {}
    # Only products that are not part of a fused attention are counted.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        with FlopCounterMode(display=False) as of_prompt, _noting(steps.model, of_first):
            _, logits, state = steps.first(prompt)
        with FlopCounterMode(display=False) as of_answer:
            for place in range(continuation.shape[1] - 1):
                _, _, state = steps.following(state, continuation[:, [place]])
            with _noting(steps.model, of_last):
                _, _, state = steps.following(state, continuation[:, [-1]])
    # The counter takes the attention of a prompt for whole squares, half of which a causal mask leaves out.
    masked = _of_attention(of_prompt) // 2 if steps.prompt_is_causal else 0
    counted = of_prompt.get_total_flops() - masked + of_answer.get_total_flops()
    read = sum(of_first.values()) + continuation.shape[1] * sum(of_last.values())
    return TrialAnswer(int(counted) // 2, read, tuple(map(shapes_of, steps.caches(state))), logits.shape[-1])


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
