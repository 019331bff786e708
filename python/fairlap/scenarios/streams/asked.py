"""What a load on servers that stream asks: prompts, servers, tokens, and how requests come."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from fairlap import quantity_text
from fairlap.errors import InvalidRequest
from fairlap.request.fields.load import E_LOAD, MOST_WORKERS
from fairlap.request.names import Contestants
from fairlap.request.units import require_within_a_day
from fairlap.scenarios.streams.client import Certificates
from fairlap.scenarios.streams.prompts import Prompt, read_prompts
from fairlap.scenarios.streams.servers import StreamServer, stream_server
from fairlap.scenarios.streams.workload.arrivals import Arrivals
from fairlap.scenarios.streams.workload.lengths import Lengths, lengths_named
from fairlap.scenarios.streams.workload.sessions import Source
from fairlap.scenarios.streams.workload.trace import is_trace, read_trace

_MOST_RATE = 1e5
_EXAMPLES = 4  # prompts that a server is examined with


@dataclass(frozen=True)
class Bounds:
    """On ninety-nine of a hundred requests. None where there is none."""

    first_token_s: float | None = None
    per_token_s: float | None = None  # of the tokens after the first, on average

    def __bool__(self) -> bool:
        return self.first_token_s is not None or self.per_token_s is not None


class LoadShape(msgspec.Struct, frozen=True):
    """How requests come, and what they have in common."""

    arrivals: str  # "users" where a request comes when its user has thought
    think_s: float | None  # on average
    answer_tokens: str  # as in --tokens; empty for those of the file
    shared_prefix: float | None  # None for that of a trace
    requests_in_a_session: float  # more than 1 in conversations


@dataclass(frozen=True)
class StreamsAsked:
    """Requests come as ``arrivals`` has it, or when a user has thought; else rates are searched."""

    source: Source
    prompts_file: str
    servers: tuple[StreamServer, ...]
    bounds: Bounds = field(default_factory=Bounds)
    rate_per_s: float | None = None
    arrivals: Arrivals = field(default_factory=Arrivals)
    concurrency: int | None = None
    think_s: float = 0.0  # on average
    certificates: Certificates = field(default_factory=Certificates)
    connections: int | None = None  # at most, of each server
    trial_s: float | None = None
    blocks: int | None = None  # None: until decided
    budget_s: float | None = None
    seed: int | None = None
    baseline: str = ""
    only_winner: bool = False
    wait: bool = True

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return self.source.prompts

    @property
    def replays(self) -> bool:
        """Whether requests come as they were recorded."""
        return self.concurrency is None and self.arrivals.kind == "trace"

    @property
    def searches(self) -> bool:
        return self.rate_per_s is None and self.concurrency is None and not self.replays

    @property
    def tokens(self) -> int:
        """Of a usual answer."""
        lengths = self.source.lengths
        return int(np.median(self.source.lengths_in_file())) if lengths is None else lengths.usual

    @property
    def most_tokens(self) -> int:
        lengths = self.source.lengths
        return max(self.source.lengths_in_file()) if lengths is None else lengths.most

    @property
    def shape(self) -> LoadShape:
        lengths = self.source.lengths
        return LoadShape(
            arrivals=self.arrivals.text if self.concurrency is None else "users",
            think_s=self.think_s or None,
            answer_tokens="" if lengths is None else lengths.text,
            shared_prefix=self.source.shared_prefix if self.source.trace is None else None,
            requests_in_a_session=self.source.requests_in_a_session,
        )

    @property
    def texts(self) -> list[str]:
        """Say in words what answers and requests are like."""
        shape, users = self.shape, self.concurrency
        unit = "requests" if shape.requests_in_a_session == 1 else "conversations"
        thinking = f" who think {quantity_text.seconds(self.think_s)}" if self.think_s else ""
        found = [f"{shape.answer_tokens or 'recorded numbers of'} tokens"]
        if users is not None:
            return [*found, quantity_text.count(users, "user") + thinking]
        if self.replays:
            found.append("as recorded" if self.rate_per_s is None else "recorded")
        elif self.arrivals.kind != "poisson":
            found.append(self.arrivals.text)
        return found if self.rate_per_s is None else [*found, f"{quantity_text.number(self.rate_per_s)} {unit}/s"]

    def examples(self) -> tuple[Prompt, ...]:
        """Return the first prompts of the file, made new."""
        numbers = np.arange(min(_EXAMPLES, len(self.source.lengths_in_file())))
        found = self.source.sessions(len(numbers), secrets.randbits(31), numbers=numbers)
        return tuple(each.first for each in found)


def streams_asked(
    prompts: Path,
    contestants: Contestants,
    *,
    tokens: Lengths | int | None = None,
    rate: float | None = None,
    arrivals: Arrivals | None = None,
    concurrency: int | None = None,
    think: float | None = None,
    first_token: float | None = None,
    per_token: float | None = None,
    shared_prefix: float | None = None,
    ca: str = "",
    insecure: bool = False,
    workers: int | None = None,
    trial: float | None = None,
    blocks: int | None = None,
    budget: float | None = None,
    seed: int | None = None,
    baseline: str = "",
    only_winner: bool = False,
    remote: bool = False,
    wait: bool = True,
) -> StreamsAsked:
    """Check everything that can be checked before a packet leaves."""
    lengths = lengths_named(str(tokens)) if isinstance(tokens, int) else tokens
    _require_load(rate, concurrency, workers)
    require_within_a_day("--trial", trial)
    require_within_a_day("--think", think)
    if insecure and ca:
        raise InvalidRequest(
            "--ca names whose certificates are trusted, and --insecure trusts all; give one", code=E_LOAD
        )
    source = _source(prompts, lengths, shared_prefix)
    chat = bool(source.prompts) and source.prompts[0].is_chat
    servers = tuple(stream_server(each, chat=chat, remote=remote) for each in contestants)
    if baseline and baseline not in [each.name for each in servers]:
        raise InvalidRequest(f"--baseline {baseline} is not one of the contestants", code="E_BASELINE")
    certificates = Certificates(ca, verified=not insecure)
    certificates.context()
    recorded = source.trace is not None and source.trace.at_s is not None
    asked = StreamsAsked(
        source=source,
        prompts_file=str(prompts),
        servers=servers,
        bounds=Bounds(_plain(first_token), _plain(per_token)),
        rate_per_s=rate,
        arrivals=arrivals or Arrivals("trace" if recorded else "poisson"),
        concurrency=concurrency,
        think_s=_plain(think) or 0.0,
        certificates=certificates,
        connections=workers,
        trial_s=_plain(trial),
        blocks=blocks,
        budget_s=_plain(budget),
        seed=seed,
        baseline=baseline,
        only_winner=only_winner,
        wait=wait,
    )
    _require_arrivals(asked, given=arrivals is not None)
    _require_bounds(asked)
    return asked


def _plain(seconds: float | None) -> float | None:
    """Turn a duration of an option into a plain float."""
    return None if seconds is None else float(seconds)


def _source(path: Path, lengths: Lengths | None, shared_prefix: float | None) -> Source:
    trace = read_trace(path) if is_trace(path) else None
    if trace is not None and shared_prefix is not None:
        raise InvalidRequest(f"what requests have in common is part of {path}; leave --shared-prefix out", code=E_LOAD)
    prompts = () if trace is not None else read_prompts(path)
    if lengths is None and any(each.tokens is None for each in prompts):
        raise InvalidRequest(f"give --tokens: not every line of {path} has the tokens of its answer", code=E_LOAD)
    return Source(prompts, trace, lengths, shared_prefix or 0.0, secrets.token_hex(8))


def _require_load(rate: float | None, concurrency: int | None, workers: int | None) -> None:
    if rate is not None and concurrency is not None:
        raise InvalidRequest(
            "give either --rate or --concurrency: a request is due at random, or by a user", code=E_LOAD
        )
    if rate is not None and not 0 < rate <= _MOST_RATE:
        raise InvalidRequest(
            f"--rate must be above 0 and at most {_MOST_RATE:,.0f} per second (got {rate:g})", code=E_LOAD
        )
    if concurrency is not None and not 1 <= concurrency <= MOST_WORKERS:
        raise InvalidRequest(f"--concurrency must be between 1 and {MOST_WORKERS} (got {concurrency})", code=E_LOAD)
    if concurrency is not None and workers is not None:
        raise InvalidRequest("each of the --concurrency users has a connection; leave --workers out", code=E_LOAD)


def _require_arrivals(asked: StreamsAsked, *, given: bool) -> None:
    trace, sessions = asked.source.trace, asked.source.most_requests_in_a_session
    if given and asked.concurrency is not None:
        raise InvalidRequest("--arrivals are of a --rate; users ask when they have thought: --think 20s", code=E_LOAD)
    if asked.replays and (trace is None or trace.at_s is None):
        raise InvalidRequest(f"{asked.prompts_file} has no times; leave --arrivals trace out", code=E_LOAD)
    if asked.replays and asked.rate_per_s is not None and trace is not None and not trace.length_s:
        raise InvalidRequest(
            f"all requests of {asked.prompts_file} came at once, so no --rate can be made of them", code=E_LOAD
        )
    if asked.think_s and asked.concurrency is None and sessions == 1:
        raise InvalidRequest("--think is for users (--concurrency) or conversations of several turns", code=E_LOAD)
    if asked.searches and sessions > 1:
        raise InvalidRequest(
            "no rate is searched for conversations, whose requests wait for answers; give --rate or --concurrency",
            code=E_LOAD,
        )


def _require_bounds(asked: StreamsAsked) -> None:
    bounds = asked.bounds
    if asked.searches and not bounds:
        raise InvalidRequest("give --rate, --concurrency, or a bound such as --first-token 200ms", code=E_LOAD)
    if bounds.per_token_s is not None and asked.most_tokens < 2:
        raise InvalidRequest("--per-token is of the tokens after the first; give more --tokens", code=E_LOAD)
    require_within_a_day("--first-token", bounds.first_token_s)
    require_within_a_day("--per-token", bounds.per_token_s)
