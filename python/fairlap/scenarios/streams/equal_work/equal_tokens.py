"""Whether servers did the same work: as many tokens as were asked for, and whose answers are not another's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.scenarios.contract import Unqualified
from fairlap.scenarios.streams.streams_found import Agreement, Counts

E_OTHER_LENGTH = "E_OTHER_LENGTH"
E_DROPPED_REQUESTS = "E_DROPPED_REQUESTS"
W_FAILED_REQUESTS = "W_FAILED_REQUESTS"
W_SERVER_AWAY = "W_SERVER_AWAY"
W_OTHER_ANSWERS = "W_OTHER_ANSWERS"
W_REPEATED_ANSWERS = "W_REPEATED_ANSWERS"
W_SHORT_ANSWERS = "W_SHORT_ANSWERS"
W_TOKENS_NOT_COUNTED = "W_TOKENS_NOT_COUNTED"

_MOST_FAILED = 0.01
_MOST_SHORTER = 0.01
_MOST_REPEATED = 0.01
_LEAST_TEXT = 0.5  # of the longest texts, where a server does not count tokens


def agreement_of_all(found: Sequence[Agreement]) -> Agreement | None:
    """Pool those of several blocks; the first difference is that of the first block with one."""
    if not found:
        return None
    differs = next((each for each in found if each.first_prompt is not None), found[0])
    prompts = sum(each.prompts for each in found)
    return Agreement(
        with_=differs.with_,
        prompts=prompts,
        identical=sum(each.identical for each in found),
        identical_characters=sum(each.prompts * each.identical_characters for each in found) / prompts,
        first_prompt=differs.first_prompt,
        first_character=differs.first_character,
    )


def why_unequal(found: Counts, of_every_server: Iterable[Counts]) -> Unqualified | None:
    """Why a server did not do the work: it dropped requests, or its answers have other lengths.

    ``of_every_server`` are the counts of all, which got the same prompts.
    """
    every = tuple(of_every_server)
    most_per_answer = max((each.tokens_per_answer for each in every), default=0.0)
    most_characters = max((each.characters_per_answer for each in every), default=0.0)
    if found.failed_share > _MOST_FAILED:
        return Unqualified(_failed_text(found), E_DROPPED_REQUESTS)
    if found.wrong:
        of_all = f"{found.wrong:,} of {quantity_text.count(found.answered, 'answer')}"
        such = f"such as {found.wrong_tokens:,} instead of {found.wrong_asked:,} tokens"
        text = f"{of_all} had other lengths than asked for, {such}"
        return Unqualified(text, E_OTHER_LENGTH)
    mean = found.tokens_per_answer
    if mean and mean < (1 - _MOST_SHORTER) * min(most_per_answer, found.asked_per_answer):
        text = f"its answers have {mean:.1f} tokens on average, and those of another server {most_per_answer:.1f}"
        return Unqualified(text, E_OTHER_LENGTH)
    characters = found.characters_per_answer
    if found.by_events and characters < _LEAST_TEXT * most_characters:
        text = f"its answers have {characters:.0f} characters on average, and those of another server"
        return Unqualified(f"{text} {most_characters:.0f}", E_OTHER_LENGTH)
    return None


def _failed_text(found: Counts) -> str:
    kinds = ", ".join(f"{count:,} {code}" for code, count in found.failed.items())
    failed = f"{found.requests - found.answered:,} of {quantity_text.count(found.requests, 'request')}"
    return f"{failed} had no whole answer ({kinds}), such as: {found.failure}"


def warnings_of(found: Counts) -> list[Notice]:
    warnings = []
    of_answers = f"of {quantity_text.count(found.answered, 'answer')}"
    if 0 < found.failed_share <= _MOST_FAILED:
        warnings.append(Notice(W_FAILED_REQUESTS, _failed_text(found)))
    if found.turns_away:
        turns = quantity_text.count(found.turns_away, "turn")
        warnings.append(
            Notice(
                W_SERVER_AWAY, f"in {turns} it could not be reached for a while and then answered again: it restarted"
            )
        )
    if found.shortened:
        text = f"{found.shortened:,} {of_answers} had fewer tokens than asked for"
        warnings.append(Notice(W_SHORT_ANSWERS, f"{text}; the server does not force their length"))
    if found.repeated > _MOST_REPEATED * found.answered:
        text = f"{found.repeated:,} {of_answers} are word for word the answer to another prompt"
        warnings.append(Notice(W_REPEATED_ANSWERS, text))
    if found.by_events:
        text = "the server does not count tokens: each event that it sent counts as one"
        warnings.append(Notice(W_TOKENS_NOT_COUNTED, text))
    elif found.inexact:
        text = f"{found.inexact:,} {of_answers} came in fewer or more events than tokens"
        warnings.append(Notice(W_TOKENS_NOT_COUNTED, f"{text}: times between tokens are those between events"))
    return warnings


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
