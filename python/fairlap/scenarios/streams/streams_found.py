"""What one turn of a server showed, as it is stored with its process.

A worker imports this module before it says hello, so it must stay light.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from fairlap.engine.measurement import Notice
from fairlap.scenarios.load.load_messages import LoadFound


class Counts(msgspec.Struct, frozen=True):
    """Of requests and their answers, in one turn or several."""

    requests: int = 0
    answered: int = 0
    failed: dict[str, int] = {}  # by the code of why there was no whole answer
    failure: str = ""  # the first of them in words
    shortened: int = 0  # answers with fewer tokens than were asked for
    lengthened: int = 0  # with more
    wrong: int = 0  # of both, those that are not the end of what the model had to say
    wrong_tokens: int = 0  # of the first of these
    wrong_asked: int = 0  # tokens that were asked for in its place
    repeated: int = 0  # answers that are word for word the one to another prompt
    tokens: int = 0  # of all answers
    characters: int = 0  # of their texts
    asked_tokens: int = 0  # for all answers
    prompt_tokens: int = 0  # of all answered requests, by the server's count
    cached_tokens: int | None = None  # of these, by the server's count; None where it does not say
    by_events: int = 0  # answers whose tokens the server does not count: each event is one
    turns_away: int = 0  # turns in which it could not be reached for a while, and then answered again
    inexact: int = 0  # others that came in fewer or more events than tokens

    def __add__(self, other: Counts) -> Counts:
        sums = {name: getattr(self, name) + getattr(other, name) for name in _SUMMED}
        return Counts(
            failed=dict(Counter(self.failed) + Counter(other.failed)),
            failure=self.failure or other.failure,
            wrong_tokens=self.wrong_tokens if self.wrong else other.wrong_tokens,
            wrong_asked=self.wrong_asked if self.wrong else other.wrong_asked,
            cached_tokens=_sum_of_known(self.cached_tokens, other.cached_tokens),
            **sums,
        )

    @property
    def failed_share(self) -> float:
        return 1 - self.answered / self.requests if self.requests else 0.0

    @property
    def tokens_per_answer(self) -> float:
        """On average; 0 where the server does not count them."""
        return self.tokens / self.answered if self.answered and not self.by_events else 0.0

    @property
    def characters_per_answer(self) -> float:
        return self.characters / self.answered if self.answered else 0.0

    @property
    def asked_per_answer(self) -> float:
        return self.asked_tokens / self.answered if self.answered else 0.0

    @property
    def cached_share(self) -> float | None:
        """Of the tokens of prompts; None where the server does not count them."""
        if self.cached_tokens is None or not self.prompt_tokens:
            return None
        return self.cached_tokens / self.prompt_tokens


def _sum_of_known(*counts: int | None) -> int | None:
    known = [each for each in counts if each is not None]
    return sum(known) if known else None


_SUMMED = (
    *("requests", "answered", "shortened", "lengthened", "wrong", "repeated"),
    *("tokens", "characters", "asked_tokens", "prompt_tokens", "by_events", "inexact", "turns_away"),
)


class StreamFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Besides times, which are the timings of the process. None where no answer shows it."""

    counts: Counts
    tokens_per_s: float | None
    requests_per_s: float | None  # that were answered
    goodput_per_s: float | None  # that met the bounds; None without bounds
    good_share: float | None  # of all requests
    lateness_p99_ns: float | None  # of the client
    client_share: float  # of a core


class Percentiles(msgspec.Struct, frozen=True):
    p50_ns: float
    p90_ns: float
    p99_ns: float


class ClientFloor(msgspec.Struct, frozen=True, kw_only=True):
    """What the client adds to times, by percentile of the requests that it sent to a server of known times."""

    requests: int
    answered: int
    first_token: Percentiles | None  # None where no request was answered
    per_token: Percentiles | None  # of pieces that all came at once; None where there was one
    whole_answer: Percentiles | None  # likewise


class ClientFound(msgspec.Struct, frozen=True, kw_only=True):
    """One of several client processes that shared the load of a turn."""

    name: str  # its host, with a number where there are several
    requests: int
    answered: int
    client_share: float  # of a core
    first_token_p50_ns: float | None  # of its own requests; None where too few were answered
    whole_answer_p50_ns: float | None
    floor: ClientFloor | None = None  # None where it was not measured
    began_ns: float = 0.0  # after the first client
    clock_offset_ns: float = 0.0  # its clock less that of the process that races
    clock_uncertainty_ns: float = 0.0  # how far that was off at most, from before the load to after it


class OverloadFound(msgspec.Struct, frozen=True, kw_only=True):
    """What happened beyond the capacity of a server, and after it. None where no answer shows it."""

    before_p50_ns: float | None  # whole answers to requests that were due before it
    offered: int  # requests that were due during it
    failed_share: float  # of these and of those after it, without a whole answer
    answered_per_s: float  # during it, whenever they were due
    answer_p50_ns: float | None  # whole answers to those that were due during it
    first_token_p50_ns: float | None  # likewise
    recovery_s: float | None  # from its end; None where it had not recovered when the last request was due
    watched_s: float  # from its end to when the last request was due
    served_per_s: float | None = None  # from its start until no more requests were open than before it


class ManneredFound(msgspec.Struct, frozen=True, kw_only=True):
    """Of clients that read slowly or hang up, and what they do to the others."""

    slow: int  # requests of clients that read slowly
    slow_answered: int
    slow_p50_ns: float | None  # to the last token, as they read it
    aborting: int  # requests whose clients were to hang up
    hung_up: int  # and did, before the answer had ended
    failed: int  # of both kinds, by the server
    others_p50_ns: float | None  # whole answers of the others
    alone_p50_ns: float | None  # whole answers to the same load when all clients are like them
    work_after_hang_up_share: float | None  # of the time that the rest of an answer takes; None where it is too short


class Agreement(msgspec.Struct, frozen=True):
    """The answers of one server compared with those of another, prompt by prompt."""

    with_: str = msgspec.field(name="with")
    prompts: int  # that both answered
    identical: int
    identical_characters: float  # the share of the other's answers up to where they first differ
    first_prompt: int | None = None  # whose answers differ, counted from 1, and at which character
    first_character: int | None = None


_MUCH_LONGER = 2.0


class TurnLength(msgspec.Struct, frozen=True):
    """How long the requests of a turn took, of as many as all contestants of the block had."""

    asked_s: float
    took_s: float
    sessions: int  # requests, or conversations
    fewest: int  # that a turn has

    @property
    def is_much_longer(self) -> bool:
        return self.took_s > _MUCH_LONGER * self.asked_s


class RequestStamps(msgspec.Struct, frozen=True):
    """Of each request, in nanoseconds since the start of the load; None for one without a whole answer.

    When each token of each answer came is among the samples of the process.
    """

    prompts: tuple[int, ...] = ()  # lines of the file, counted from 0 without blank ones
    from_ns: tuple[float | None, ...] = ()  # when it was due, or its user had thought
    first_ns: tuple[float | None, ...] = ()  # when its first token came
    last_ns: tuple[float | None, ...] = ()
    tokens: tuple[int, ...] = ()


class StreamsFound(msgspec.Struct, frozen=True, kw_only=True):
    """``search`` is that of a race that looks for the largest rate, at which the figures then are."""

    alone_ns: float | None = None  # what an answer takes while nothing else is asked
    figures: StreamFigures | None = None  # None where it was not loaded
    search: LoadFound | None = None
    client_floor: ClientFloor | None = None  # None where no answer came, or a function is the client
    agreement: Agreement | None = None  # with the first of the contestants that answered in its block
    unqualified: Notice | None = None  # why it is not ranked, by what was seen besides the load
    turn: TurnLength | None = None  # None of a search or a trace, whose requests are not chosen by it
    ready_s: float | None = None  # from the start of its process; None where fairlap did not start it
    requests: RequestStamps = RequestStamps()
    overload: OverloadFound | None = None  # None where none was asked for
    manners: ManneredFound | None = None  # likewise
    clients: tuple[ClientFound, ...] = ()  # where several shared the load
