"""The figures of a load on a server that streams, from when each token of each answer came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from fairlap.scenarios.streams.asked import Bounds
from fairlap.scenarios.streams.issue import Served

Times = npt.NDArray[np.float64]

_QUANTILES = (0.5, 0.9, 0.99)


class Percentiles(msgspec.Struct, frozen=True):
    p50_ns: float
    p90_ns: float
    p99_ns: float


class StreamFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Times count from when a request was due, or its user free. None where no answer shows it."""

    requests: int
    answered: int
    failed: dict[str, int]  # by the code of why there was no answer
    shortened: int  # answers with fewer tokens than were asked for
    lengthened: int  # with more
    repeated: int  # answers that are word for word the one to another prompt
    tokens: int  # of all answers
    prompt_tokens: int | None  # of all answered requests, by the server's count
    cached_tokens: int | None  # of these, by the server's count
    first_token: Percentiles | None
    per_token: Percentiles | None  # of an answer, the mean of its tokens after those that came first
    between_tokens: Percentiles | None  # from one token to the next, over all answers
    end_to_end: Percentiles | None  # to the last token
    tokens_per_s: float | None
    tokens_per_s_per_user: float | None  # of the median answer, from its first token on
    requests_per_s: float | None  # that were answered
    goodput_per_s: float | None  # that met the bounds; None without bounds
    good_share: float | None  # of all requests
    lateness_p99_ns: float | None  # of the client
    client_share: float  # of a core


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


def figures_of(loads: Sequence[Served], bounds: Bounds) -> StreamFigures:
    """Of all requests of one server in several loads."""
    each = [Tokens.of(served) for served in loads]

    def together(read: Callable[[Tokens], Times]) -> Times:
        return np.concatenate([np.zeros(0), *map(read, each)])

    answers = [answer for served in loads for answer in served.answers]
    whole = [answer for answer in answers if answer.failure is None]
    took_s = sum(_length_s(served) for served in loads)
    tokens = sum(answer.tokens for answer in whole)
    per_token = together(lambda found: found.per_token_ns)
    usual = np.nanmedian(per_token) if np.isfinite(per_token).any() else 0.0
    meets = [found.meets(bounds) for found in each]
    good = sum(int(found.sum()) for found in meets)
    lateness = np.concatenate([np.zeros(0), *(served.lateness_ns for served in loads)])
    counted = bool(bounds) and took_s > 0
    in_time = [served.last_ns <= served.busy_until_ns for served in loads]
    good_in_time = sum(int((found & when).sum()) for found, when in zip(meets, in_time, strict=True))
    prompt_tokens = sum(answer.prompt_tokens for answer in whole)
    cached = [answer.cached_tokens for answer in whole if answer.cached_tokens is not None]
    return StreamFigures(
        requests=len(answers),
        answered=len(whole),
        failed=dict(Counter(answer.failure.code for answer in answers if answer.failure is not None)),
        shortened=sum(answer.tokens < answer.asked_tokens for answer in whole),
        lengthened=sum(answer.tokens > answer.asked_tokens for answer in whole),
        repeated=sum(map(_repeated, loads)),
        tokens=tokens,
        prompt_tokens=prompt_tokens or None,
        cached_tokens=sum(cached) if cached else None,
        first_token=_percentiles(together(lambda found: found.first_ns)),
        per_token=_percentiles(per_token),
        between_tokens=_percentiles(gaps_ns(loads)),
        end_to_end=_percentiles(together(lambda found: found.end_to_end_ns)),
        tokens_per_s=sum(map(_tokens_in_time, loads)) / took_s if took_s else None,
        tokens_per_s_per_user=1e9 / float(usual) if usual else None,
        requests_per_s=sum(int(when.sum()) for when in in_time) / took_s if took_s else None,
        goodput_per_s=good_in_time / took_s if counted else None,
        good_share=good / len(answers) if counted else None,
        lateness_p99_ns=float(np.nanquantile(lateness, 0.99)) if np.isfinite(lateness).any() else None,
        client_share=max((served.client_share for served in loads), default=0.0),
    )


def gaps_ns(loads: Sequence[Served]) -> Times:
    """From one token to the next; tokens that came at once are nothing apart."""
    found = [np.zeros(0)]
    for served in loads:
        for answer in served.answers:
            found.append(np.diff(np.array(answer.came_ns, np.float64)))
            if answer.arrivals_are_exact:
                found.append(np.zeros(sum(answer.arrived) - len(answer.arrived)))
    return np.concatenate(found)


def _length_s(served: Served) -> float:
    """From when the first request was due to the last token; of users, while all of them are at work."""
    if not served.answered.any():
        return 0.0
    if np.isfinite(served.busy_until_ns):
        return served.busy_until_ns / 1e9
    return float(np.nanmax(served.last_ns) - np.nanmin(served.from_ns)) / 1e9


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


def _percentiles(times_ns: Times) -> Percentiles | None:
    known = times_ns[np.isfinite(times_ns)]
    if not known.size:
        return None
    return Percentiles(*(float(each) for each in np.quantile(known, _QUANTILES)))
