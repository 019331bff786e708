"""What a load on a server that streams shows, from when each token of each answer came."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairlap.request.fields.streams import Bounds
from fairlap.scenarios.generation import TIME_PER_OUTPUT_TOKEN, TIME_TO_FIRST_TOKEN, TOKEN_GAP
from fairlap.scenarios.streams.answers import Answer
from fairlap.scenarios.streams.clients.client import E_SERVER
from fairlap.scenarios.streams.issue import Served
from fairlap.scenarios.streams.streams_found import Counts, RequestStamps, StreamFigures

Times = npt.NDArray[np.float64]

WHOLE_ANSWER = "wall_ns"
"""As the time of any call is named."""

_LEAST_NS, _FEWEST = 1.0, 2
_AT_THE_LENGTH = "length"


@dataclass(frozen=True)
class Tokens:
    """Of each request; not-a-number for those without an answer."""

    first_ns: Times
    per_token_ns: Times  # not-a-number too where nothing came after the first
    end_to_end_ns: Times

    @classmethod
    def of(cls, served: Served) -> Tokens:
        later = np.array([each.tokens - each.arrived[0] if each.came_ns else 0 for each in served.answers], np.float64)
        several = np.array([len(each.came_ns) > 1 for each in served.answers], bool) & (later > 0)
        per_token = np.full(len(later), np.nan)
        per_token[several] = (served.last_ns - served.first_ns)[several] / later[several]
        return cls(served.first_ns - served.from_ns, per_token, served.last_ns - served.from_ns)

    def meets(self, bounds: Bounds) -> npt.NDArray[np.bool_]:
        """Which requests were answered within the bounds; where only one token came, none is late after it."""
        good: npt.NDArray[np.bool_] = np.isfinite(self.first_ns)
        if bounds.first_token_s is not None:
            good &= self.first_ns <= 1e9 * bounds.first_token_s
        if bounds.per_token_s is not None:
            good &= ~(self.per_token_ns > 1e9 * bounds.per_token_s)
        return good


def figures_of(served: Served, bounds: Bounds, counted: Served | None = None) -> StreamFigures:
    """Count other requests than those of the figures, where ``counted`` is given."""
    counts, took_s = _counts_of(counted or served), _length_s(served)
    meets = Tokens.of(served).meets(bounds)
    is_bounded = bool(bounds) and took_s > 0
    lateness = served.lateness_ns
    return StreamFigures(
        counts=counts,
        tokens_per_s=_tokens_in_time(served) / took_s if took_s else None,
        requests_per_s=answered_per_s(served) or None,
        goodput_per_s=int((meets & _in_time(served)).sum()) / took_s if is_bounded else None,
        good_share=int(meets.sum()) / len(served.answers) if is_bounded else None,
        lateness_p99_ns=float(np.nanquantile(lateness, 0.99)) if np.isfinite(lateness).any() else None,
        client_share=served.client_share,
    )


def answered_per_s(served: Served) -> float:
    """Answers in a second; 0 where there is none."""
    took_s = _length_s(served)
    return int(_in_time(served).sum()) / took_s if took_s else 0.0


def times_of(served: Served) -> dict[str, Times]:
    """By quantity, that of whole answers first; without those that no two answers or tokens show.

    They count from when a request was due, or its user had thought. Tokens that came at once are a nanosecond apart.
    """
    tokens = Tokens.of(served)
    found = {
        WHOLE_ANSWER: tokens.end_to_end_ns,
        TIME_TO_FIRST_TOKEN: tokens.first_ns,
        TIME_PER_OUTPUT_TOKEN: tokens.per_token_ns,
        TOKEN_GAP: gaps_ns(served),
    }
    known = {name: np.maximum(values[np.isfinite(values)], _LEAST_NS) for name, values in found.items()}
    return {name: values for name, values in known.items() if values.size >= _FEWEST}


def arrivals_of(served: Served) -> dict[str, Times]:
    """When tokens of each answer came, in nanoseconds since the start of the load: one value for each arrival."""
    whole = [number for number, each in enumerate(served.answers) if each.failure is None]
    came = [_since_start_ns(served, number) for number in whole]
    columns = {
        "arrivals/request": [np.full(len(own), number, np.float64) for number, own in zip(whole, came, strict=True)],
        "arrivals/came_ns": came,
        "arrivals/tokens": [np.array(served.answers[number].arrived, np.float64) for number in whole],
    }
    return {name: np.concatenate([np.zeros(0), *values]) for name, values in columns.items()}


def _since_start_ns(served: Served, number: int) -> Times:
    came = np.array(served.answers[number].came_ns)
    since_start: Times = (came - came[0]) + served.first_ns[number]
    return since_start


def gaps_ns(served: Served) -> Times:
    """From one token to the next; tokens that came at once are nothing apart."""
    found = [np.zeros(0)]
    for answer in served.answers:
        found.append(np.diff(np.array(answer.came_ns, np.float64)))
        if answer.arrivals_are_exact:
            found.append(np.zeros(sum(answer.arrived) - len(answer.arrived)))
    return np.concatenate(found)


def stamps_of(served: Served) -> RequestStamps:
    return RequestStamps(
        prompts=tuple(served.prompts.tolist()),
        from_ns=_known(served.from_ns),
        first_ns=_known(served.first_ns),
        last_ns=_known(served.last_ns),
        tokens=tuple(each.tokens for each in served.answers),
    )


def _known(times_ns: Times) -> tuple[float | None, ...]:
    return tuple(round(each, 1) if np.isfinite(each) else None for each in times_ns.tolist())


def _counts_of(served: Served) -> Counts:
    whole = [answer for answer in served.answers if answer.failure is None]
    failures = [answer.failure for answer in served.answers if answer.failure is not None]
    says_its_end = any(answer.finish for answer in whole)
    wrong = [answer for answer in whole if _has_wrong_length(answer, says_its_end=says_its_end)]
    cached = [answer.cached_tokens for answer in whole if answer.cached_tokens is not None]
    return Counts(
        requests=len(served.answers),
        answered=len(whole),
        failed=dict(Counter(failure.code for failure in failures)),
        failure=failures[0].text if failures else "",
        shortened=sum(answer.tokens < answer.asked_tokens for answer in whole),
        lengthened=sum(answer.tokens > answer.asked_tokens for answer in whole),
        wrong=len(wrong),
        wrong_tokens=wrong[0].tokens if wrong else 0,
        wrong_asked=wrong[0].asked_tokens if wrong else 0,
        repeated=_repeated(served),
        tokens=sum(answer.tokens for answer in whole),
        characters=sum(len(answer.text) for answer in whole),
        asked_tokens=sum(answer.asked_tokens for answer in whole),
        prompt_tokens=sum(answer.prompt_tokens for answer in whole),
        cached_tokens=sum(cached) if cached else None,
        by_events=sum(answer.counted_by == "events" for answer in whole),
        turns_away=int(_was_away(served)),
        inexact=sum(answer.counted_by != "events" and not answer.arrivals_are_exact for answer in whole),
    )


def _was_away(served: Served) -> bool:
    """Whether answers came after requests that found no server, in the order in which all ended.

    How often is not counted: while a server ends, some of its connections still answer.
    """
    is_away = False
    for place in np.argsort(served.ended_ns):  # not-a-number, of requests that did not end, comes last
        failure = served.answers[place].failure
        if failure is not None and failure.code == E_SERVER:
            is_away = True
        elif failure is None and is_away:
            return True
    return False


def _has_wrong_length(answer: Answer, *, says_its_end: bool) -> bool:
    """One that its model ended may be shorter; one that no model ended was cut, where others of its server say how."""
    tokens = answer.asked_tokens
    if answer.tokens == tokens:
        return False
    if answer.counted_by == "events":  # how many tokens an event holds is not known
        return len(answer.came_ns) > tokens or (says_its_end and not answer.finish)
    return answer.tokens > tokens or answer.finish in ("", _AT_THE_LENGTH)


def _length_s(served: Served) -> float:
    """From when the first request was due to the last token; of users, while all of them are at work."""
    if not served.answered.any():
        return 0.0
    if np.isfinite(served.busy_until_ns):
        return served.busy_until_ns / 1e9
    return float(np.nanmax(served.last_ns) - np.nanmin(served.from_ns)) / 1e9


def _in_time(served: Served) -> npt.NDArray[np.bool_]:
    """Which requests were answered; of users, while all of them were at work."""
    answered: npt.NDArray[np.bool_] = served.last_ns <= served.busy_until_ns
    return answered


def _tokens_in_time(served: Served) -> float:
    """Of users, those that came while all of them were at work; of others all."""
    found = 0.0
    for answer, first_ns in zip(served.answers, served.first_ns.tolist(), strict=True):
        if answer.failure is not None:
            continue
        last_ns = served.busy_until_ns - first_ns + answer.came_ns[0]  # on the client's clock
        arrived = zip(answer.arrived, answer.came_ns, strict=True)
        in_time = sum(count for count, came_ns in arrived if came_ns <= last_ns)
        found += answer.tokens * in_time / sum(answer.arrived)
    return found


def _repeated(served: Served) -> int:
    """Answers to a prompt that are those to another one."""
    prompts_by_text: dict[str, set[int]] = {}
    answered = [(int(prompt), each.text) for prompt, each in zip(served.prompts, served.answers, strict=True)
                if each.failure is None]  # fmt: skip
    for prompt, text in answered:
        prompts_by_text.setdefault(text, set()).add(prompt)
    return sum(len(prompts_by_text[text]) > 1 for _, text in answered)
