"""The greedy answers of two servers, compared prompt by prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairlap.scenarios.streams.issue import Served
from fairlap.scenarios.streams.streams_found import Agreement

ByPrompt = Mapping[tuple[int, str], str]
"""Answers by the number of a prompt, and a digest of the prompt as it was sent."""


def answers_by_prompt(loads: Iterable[Served]) -> dict[tuple[int, str], str]:
    """Take the first answer to each prompt: another one may differ by how requests were batched."""
    found: dict[tuple[int, str], str] = {}
    for served in loads:
        for prompt, sent, answer in zip(served.prompts.tolist(), served.sent, served.answers, strict=True):
            if answer.failure is None:
                found.setdefault((prompt, sent), answer.text)
    return found


def agreement(own: ByPrompt, other: ByPrompt, name: str) -> Agreement | None:
    """None where there is no prompt that both answered."""
    both = sorted({*own} & {*other})
    if not both:
        return None
    alike = {prompt: _alike(own[prompt], other[prompt]) for prompt in both}
    length = {prompt: max(len(own[prompt]), len(other[prompt])) for prompt in both}
    differ = [prompt for prompt in both if own[prompt] != other[prompt]]
    first = differ[0] if differ else None
    return Agreement(
        with_=name,
        prompts=len(both),
        identical=len(both) - len(differ),
        identical_characters=sum(alike.values()) / max(sum(length.values()), 1),
        first_prompt=None if first is None else first[0] + 1,
        first_character=None if first is None else alike[first] + 1,
    )


def _alike(own: str, other: str) -> int:
    """Count the characters up to the first that differs."""
    pairs = zip(own, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(own), len(other)))
