"""Whether servers did the same work: as many tokens as were asked for, and the same greedy answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.scenarios.contract import Unqualified
from fairlap.scenarios.streams.figures import StreamFigures
from fairlap.scenarios.streams.issue import Served
from fairlap.scenarios.streams.openai_api import Answer

E_OTHER_LENGTH = "E_OTHER_LENGTH"
E_DROPPED_REQUESTS = "E_DROPPED_REQUESTS"
W_FAILED_REQUESTS = "W_FAILED_REQUESTS"
W_OTHER_ANSWERS = "W_OTHER_ANSWERS"
W_REPEATED_ANSWERS = "W_REPEATED_ANSWERS"
W_SHORT_ANSWERS = "W_SHORT_ANSWERS"
W_TOKENS_NOT_COUNTED = "W_TOKENS_NOT_COUNTED"

_MOST_FAILED = 0.01
_MOST_SHORTER = 0.01
_MOST_REPEATED = 0.01
_AT_THE_LENGTH = "length"

ByPrompt = Mapping[tuple[int, str], str]
"""Answers by the number of a prompt, and a digest of the prompt as it was sent."""


class Agreement(msgspec.Struct, frozen=True):
    """The answers of one server compared with those of another, prompt by prompt."""

    with_: str = msgspec.field(name="with")
    prompts: int  # that both answered
    identical: int
    identical_characters: float  # the share of the other's answers up to where they first differ
    first_prompt: int | None = None  # whose answers differ, counted from 1, and at which character
    first_character: int | None = None


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


def why_unequal(figures: StreamFigures, answers: Sequence[Answer], most_per_answer: float) -> Unqualified | None:
    """Why a server did not do the work: it dropped requests, or its answers have other lengths.

    ``most_per_answer`` are the tokens that a server gave, on average, to the same prompts.
    """
    if _failed_share(figures) > _MOST_FAILED:
        return Unqualified(_failed_text(figures, answers), E_DROPPED_REQUESTS)
    answered = quantity_text.count(figures.answered, "answer")
    wrong = [each for each in answers if _has_wrong_length(each)]
    if wrong:
        such = f"such as {wrong[0].tokens:,} instead of {wrong[0].asked_tokens:,} tokens"
        text = f"{len(wrong):,} of {answered} had other lengths than asked for, {such}"
        return Unqualified(text, E_OTHER_LENGTH)
    mean = figures.tokens / max(figures.answered, 1)
    if mean < (1 - _MOST_SHORTER) * most_per_answer:
        text = f"its answers have {mean:.1f} tokens on average, and those of another server {most_per_answer:.1f}"
        return Unqualified(text, E_OTHER_LENGTH)
    return None


def _failed_share(figures: StreamFigures) -> float:
    return 1 - figures.answered / figures.requests if figures.requests else 0.0


def _failed_text(figures: StreamFigures, answers: Sequence[Answer]) -> str:
    kinds = ", ".join(f"{count:,} {code}" for code, count in figures.failed.items())
    first = next(each.failure.text for each in answers if each.failure is not None)
    failed = f"{figures.requests - figures.answered:,} of {quantity_text.count(figures.requests, 'request')}"
    return f"{failed} had no whole answer ({kinds}), such as: {first}"


def _has_wrong_length(answer: Answer) -> bool:
    """One that its model ended may be shorter."""
    tokens = answer.asked_tokens
    if answer.failure is not None or answer.tokens == tokens:
        return False
    if answer.counted_by == "events":  # how many tokens an event holds is not known
        return len(answer.came_ns) > tokens
    return answer.tokens > tokens or answer.finish in ("", _AT_THE_LENGTH)


def warnings_of(figures: StreamFigures, answers: Sequence[Answer]) -> list[Notice]:
    found = []
    whole = [each for each in answers if each.failure is None]
    if 0 < _failed_share(figures) <= _MOST_FAILED:
        found.append(Notice(W_FAILED_REQUESTS, _failed_text(figures, answers)))
    if figures.shortened:
        of_all = f"{figures.shortened:,} of {quantity_text.count(figures.answered, 'answer')}"
        text = f"{of_all} had fewer tokens than asked for; the server does not force their length"
        found.append(Notice(W_SHORT_ANSWERS, text))
    if figures.repeated > _MOST_REPEATED * figures.answered:
        of_all = f"{figures.repeated:,} of {quantity_text.count(figures.answered, 'answer')}"
        found.append(Notice(W_REPEATED_ANSWERS, f"{of_all} are word for word the answer to another prompt"))
    if any(each.counted_by == "events" for each in whole):
        text = "the server does not count tokens: each event that it sent counts as one"
        found.append(Notice(W_TOKENS_NOT_COUNTED, text))
    elif uncounted := sum(not each.arrivals_are_exact for each in whole):
        of_all = f"{uncounted:,} of {quantity_text.count(figures.answered, 'answer')}"
        text = f"{of_all} came in fewer or more events than tokens: times between tokens are those between events"
        found.append(Notice(W_TOKENS_NOT_COUNTED, text))
    return found


def warnings_of_agreement(found: Agreement | None) -> list[Notice]:
    if found is None or found.identical == found.prompts:
        return []
    same = quantity_text.share(found.identical_characters)
    text = (
        f"{found.identical:,} of {quantity_text.count(found.prompts, 'answer')} are those of {found.with_}, and {same} "
        f"of their text up to the first difference; prompt {found.first_prompt} differs from character "
        f"{found.first_character} on"
    )
    return [Notice(W_OTHER_ANSWERS, text)]
