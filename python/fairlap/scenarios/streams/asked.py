"""What a load on servers that stream asks: prompts, servers, tokens, and how requests come."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairlap.errors import InvalidRequest
from fairlap.request.fields.load import E_LOAD, MOST_WORKERS
from fairlap.request.fields.streams import OF_FILE, Bounds, Manners, Overload, StreamLoad
from fairlap.request.fields.traffic import traffic_of
from fairlap.request.names import ContestantName
from fairlap.request.units import require_within_a_day
from fairlap.scenarios.streams.clients.client import Certificates
from fairlap.scenarios.streams.prompts import E_PROMPTS, Prompt, read_prompts
from fairlap.scenarios.streams.servers import StreamServer, stream_server
from fairlap.scenarios.streams.several_clients.client_names import E_CLIENTS, MOST_CLIENTS
from fairlap.scenarios.streams.workload.arrivals import Arrivals, arrivals_named
from fairlap.scenarios.streams.workload.lengths import Lengths, lengths_named
from fairlap.scenarios.streams.workload.sessions import Source
from fairlap.scenarios.streams.workload.trace import is_trace, read_trace

_MOST_RATE = 1e5
_EXAMPLES = 4  # prompts that a server is examined with


@dataclass(frozen=True)
class StreamsAsked:
    load: StreamLoad
    source: Source
    servers: tuple[StreamServer, ...]

    @property
    def certificates(self) -> Certificates:
        return Certificates(self.load.ca, verified=self.load.verified)

    @property
    def arrivals(self) -> Arrivals:
        return arrivals_named(self.load.arrivals)

    @property
    def most_tokens(self) -> int:
        lengths = self.source.lengths
        return max(self.source.lengths_in_file()) if lengths is None else lengths.most

    def examples(self) -> tuple[Prompt, ...]:
        """Return the first prompts of the file, made new."""
        numbers = np.arange(min(_EXAMPLES, len(self.source.lengths_in_file())))
        found = self.source.sessions(len(numbers), secrets.randbits(31), numbers=numbers)
        return tuple(each.first for each in found)


def streams_asked(
    prompts: Path,
    contestants: Sequence[ContestantName],
    *,
    tokens: Lengths | int | None = None,
    rate: float | None = None,
    arrivals: Arrivals | None = None,
    concurrency: int | None = None,
    think: float | None = None,
    users: int | None = None,
    first_token: float | None = None,
    per_token: float | None = None,
    shared_prefix: float | None = None,
    overload: Overload | None = None,
    slow_clients: tuple[float, float] | None = None,
    abort: float | None = None,
    clients: str = "",
    ca: str = "",
    insecure: bool = False,
    workers: int | None = None,
    trial: float | None = None,
    remote: bool = False,
) -> StreamsAsked:
    """Check everything that can be checked before a packet leaves."""
    lengths = lengths_named(str(tokens)) if isinstance(tokens, int) else tokens
    _require_load(rate, concurrency, workers, clients)
    require_within_a_day("--trial", trial)
    require_within_a_day("--think", think)
    traffic = None if users is None else traffic_of(users, think)
    if insecure and ca:
        raise InvalidRequest(
            "--ca names whose certificates are trusted, and --insecure trusts all; give one", code=E_LOAD
        )
    source = _source(prompts, lengths, shared_prefix)
    recorded = source.trace is not None and source.trace.at_s is not None
    load = StreamLoad(
        prompts=str(prompts.absolute()),
        sha256=sha256_of(prompts),
        tokens=int(np.median(source.lengths_in_file())) if lengths is None else lengths.usual,
        lengths=OF_FILE if lengths is None else "" if lengths.are_equal else lengths.text,
        rate_per_s=rate,
        arrivals=(arrivals or Arrivals("trace" if recorded and concurrency is None else "poisson")).text,
        concurrency=concurrency,
        think_s=0.0 if traffic is not None else _plain(think) or 0.0,
        shared_prefix=None if source.trace is not None else source.shared_prefix,
        requests_in_a_session=source.requests_in_a_session,
        bounds=Bounds(_plain(first_token), _plain(per_token)),
        connections=workers,
        trial_s=_plain(trial),
        ca=str(Path(ca).absolute()) if ca else "",
        verified=not insecure,
        traffic=traffic,
        overload=overload,
        manners=Manners(*(slow_clients or (0.0, 0.0)), abort_share=abort or 0.0),
        clients=clients,
    )
    asked = asked_of(load, source, contestants, remote=remote)
    _require_arrivals(asked, given=arrivals is not None)
    _require_overload(asked)
    _require_manners(asked)
    _require_bounds(asked)
    _require_clients(asked)
    asked.certificates.context()
    return asked


def asked_of(load: StreamLoad, source: Source, contestants: Sequence[ContestantName], *, remote: bool) -> StreamsAsked:
    chat = bool(source.prompts) and source.prompts[0].is_chat
    servers = tuple(stream_server(each, chat=chat, remote=remote) for each in contestants)
    _require_prompts(servers, source.prompts)
    return StreamsAsked(load, source, servers)


def source_of(load: StreamLoad) -> Source:
    """Read the file of a plan again. Its prompts are new to servers that were asked them before."""
    lengths = None if load.lengths == OF_FILE else lengths_named(load.lengths or str(load.tokens))
    return _source(Path(load.prompts), lengths, load.shared_prefix)


def sha256_of(prompts: Path) -> str:
    with prompts.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _source(path: Path, lengths: Lengths | None, shared_prefix: float | None) -> Source:
    trace = read_trace(path) if is_trace(path) else None
    if trace is not None and shared_prefix is not None:
        raise InvalidRequest(f"what requests have in common is part of {path}; leave --shared-prefix out", code=E_LOAD)
    prompts = () if trace is not None else read_prompts(path)
    if lengths is None and any(each.tokens is None for each in prompts):
        raise InvalidRequest(f"give --tokens: not every line of {path} has the tokens of its answer", code=E_LOAD)
    return Source(prompts, trace, lengths, shared_prefix or 0.0, secrets.token_hex(8))


def _require_prompts(servers: Sequence[StreamServer], prompts: Sequence[Prompt]) -> None:
    for server in servers:
        for number, prompt in enumerate(prompts, 1):
            if why_not := server.protocol.why_not(prompt.first):
                raise InvalidRequest(f"{server.protocol.title} {why_not}; prompt {number} has another", code=E_PROMPTS)


def _plain(seconds: float | None) -> float | None:
    """Turn a duration of an option into a plain float."""
    return None if seconds is None else float(seconds)


def _require_load(rate: float | None, concurrency: int | None, workers: int | None, clients: str) -> None:
    most_users = MOST_WORKERS * (int(clients) if clients.isdecimal() else MOST_CLIENTS if clients else 1)
    if rate is not None and concurrency is not None:
        raise InvalidRequest(
            "give either --rate or --concurrency: a request is due at random, or by a user", code=E_LOAD
        )
    if rate is not None and not 0 < rate <= _MOST_RATE:
        raise InvalidRequest(
            f"--rate must be above 0 and at most {_MOST_RATE:,.0f} per second (got {rate:g})", code=E_LOAD
        )
    if concurrency is not None and not 1 <= concurrency <= most_users:
        raise InvalidRequest(f"--concurrency must be between 1 and {most_users} (got {concurrency})", code=E_LOAD)
    if concurrency is not None and workers is not None:
        raise InvalidRequest("each of the --concurrency users has a connection; leave --workers out", code=E_LOAD)


def _require_arrivals(asked: StreamsAsked, *, given: bool) -> None:
    load, trace, sessions = asked.load, asked.source.trace, asked.source.most_requests_in_a_session
    if given and load.concurrency is not None:
        raise InvalidRequest("--arrivals are of a --rate; users ask when they have thought: --think 20s", code=E_LOAD)
    if load.replays and (trace is None or trace.at_s is None):
        raise InvalidRequest(f"{load.prompts} has no times; leave --arrivals trace out", code=E_LOAD)
    if load.replays and load.rate_per_s is not None and trace is not None and not trace.length_s:
        raise InvalidRequest(
            f"all requests of {load.prompts} came at once, so no --rate can be made of them", code=E_LOAD
        )
    if load.think_s and load.concurrency is None and sessions == 1:
        raise InvalidRequest("--think is for users (--concurrency) or conversations of several turns", code=E_LOAD)
    if load.searches and sessions > 1:
        raise InvalidRequest(
            "no rate is searched for conversations, whose requests wait for answers; give --rate or --concurrency",
            code=E_LOAD,
        )


def _require_overload(asked: StreamsAsked) -> None:
    load = asked.load
    if load.overload is None:
        return
    if load.rate_per_s is None or load.replays or load.requests_in_a_session > 1:
        raise InvalidRequest("--overload is a step of a --rate of single requests; give --rate", code=E_LOAD)
    if load.overload.rate_per_s <= load.rate_per_s:
        raise InvalidRequest(
            f"--overload must be above --rate {load.rate_per_s:g} (got {load.overload.rate_per_s:g})", code=E_LOAD
        )


def _require_manners(asked: StreamsAsked) -> None:
    load, manners = asked.load, asked.load.manners
    if not manners:
        return
    if load.searches or load.replays or load.overload is not None or load.requests_in_a_session > 1:
        raise InvalidRequest(
            "--slow-clients and --abort are of single requests at a --rate or --concurrency, without --overload",
            code=E_LOAD,
        )
    if manners.slow_share + manners.abort_share >= 1:
        raise InvalidRequest("--slow-clients and --abort leave no others, whose latency is looked at", code=E_LOAD)
    if manners.abort_share and asked.most_tokens < 2:
        raise InvalidRequest("--abort is of answers that have begun; give more --tokens", code=E_LOAD)
    by_http = all(each.function is None and not each.is_by_grpc for each in asked.servers)
    if manners.slow_share and not by_http:
        raise InvalidRequest(
            "--slow-clients needs servers by HTTP: gRPC reads ahead, and a function has no connection", code=E_LOAD
        )


def _require_clients(asked: StreamsAsked) -> None:
    if asked.load.clients and any(each.function is not None for each in asked.servers):
        raise InvalidRequest("a function that asks runs in this process; leave --clients out", code=E_CLIENTS)


def _require_bounds(asked: StreamsAsked) -> None:
    bounds = asked.load.bounds
    if asked.load.traffic is not None and not asked.load.searches:
        raise InvalidRequest(
            "--users are served at the largest rate that is found; give bounds, without --rate and --concurrency",
            code=E_LOAD,
        )
    if asked.load.searches and not bounds:
        raise InvalidRequest("give --rate, --concurrency, or a bound such as --first-token 200ms", code=E_LOAD)
    if bounds.per_token_s is not None and asked.most_tokens < 2:
        raise InvalidRequest("--per-token is of the tokens after the first; give more --tokens", code=E_LOAD)
    require_within_a_day("--first-token", bounds.first_token_s)
    require_within_a_day("--per-token", bounds.per_token_s)
