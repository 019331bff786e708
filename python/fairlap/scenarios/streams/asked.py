"""What a load on servers that stream asks: prompts, servers, tokens, and how requests come."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlap.errors import InvalidRequest
from fairlap.request.fields.load import E_LOAD, MOST_WORKERS
from fairlap.request.fields.streams import Bounds, StreamLoad
from fairlap.request.names import ContestantName
from fairlap.request.units import require_within_a_day
from fairlap.scenarios.streams.client import Certificates
from fairlap.scenarios.streams.prompts import E_PROMPTS, Prompt, read_prompts
from fairlap.scenarios.streams.servers import StreamServer, stream_server

MOST_TOKENS = 100_000
_MOST_RATE = 1e5


@dataclass(frozen=True)
class StreamsAsked:
    load: StreamLoad
    prompts: tuple[Prompt, ...]
    servers: tuple[StreamServer, ...]

    @property
    def certificates(self) -> Certificates:
        return Certificates(self.load.ca, verified=self.load.verified)


def streams_asked(
    prompts: Path,
    contestants: Sequence[ContestantName],
    *,
    tokens: int,
    rate: float | None = None,
    concurrency: int | None = None,
    first_token: float | None = None,
    per_token: float | None = None,
    ca: str = "",
    insecure: bool = False,
    workers: int | None = None,
    trial: float | None = None,
    remote: bool = False,
) -> StreamsAsked:
    """Check everything that can be checked before a packet leaves."""
    _require_load(tokens, rate, concurrency, workers)
    bounds = Bounds(_plain(first_token), _plain(per_token))
    _require_bounds(bounds, tokens, needed=rate is None and concurrency is None)
    require_within_a_day("--trial", trial)
    if insecure and ca:
        raise InvalidRequest(
            "--ca names whose certificates are trusted, and --insecure trusts all; give one", code=E_LOAD
        )
    found = read_prompts(prompts)
    load = StreamLoad(
        prompts=str(prompts.absolute()),
        sha256=sha256_of(prompts),
        tokens=tokens,
        rate_per_s=rate,
        concurrency=concurrency,
        bounds=bounds,
        connections=workers,
        trial_s=_plain(trial),
        ca=str(Path(ca).absolute()) if ca else "",
        verified=not insecure,
    )
    asked = StreamsAsked(load, found, servers_of(contestants, found, remote=remote))
    _require_prompts(asked.servers, found)
    asked.certificates.context()
    return asked


def servers_of(
    contestants: Sequence[ContestantName], prompts: Sequence[Prompt], *, remote: bool
) -> tuple[StreamServer, ...]:
    return tuple(stream_server(each, chat=prompts[0].is_chat, remote=remote) for each in contestants)


def sha256_of(prompts: Path) -> str:
    with prompts.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _require_prompts(servers: Sequence[StreamServer], prompts: Sequence[Prompt]) -> None:
    for server in servers:
        for number, prompt in enumerate(prompts, 1):
            if why_not := server.protocol.why_not(prompt):
                raise InvalidRequest(f"{server.protocol.title} {why_not}; prompt {number} has another", code=E_PROMPTS)


def _plain(seconds: float | None) -> float | None:
    """Turn a duration of an option into a plain float."""
    return None if seconds is None else float(seconds)


def _require_load(tokens: int, rate: float | None, concurrency: int | None, workers: int | None) -> None:
    if not 1 <= tokens <= MOST_TOKENS:
        raise InvalidRequest(f"--tokens must be between 1 and {MOST_TOKENS:,} (got {tokens})", code=E_LOAD)
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


def _require_bounds(bounds: Bounds, tokens: int, *, needed: bool) -> None:
    if needed and not bounds:
        raise InvalidRequest("give --rate, --concurrency, or a bound such as --first-token 200ms", code=E_LOAD)
    if bounds.per_token_s is not None and tokens < 2:
        raise InvalidRequest("--per-token is of the tokens after the first; give more --tokens", code=E_LOAD)
    require_within_a_day("--first-token", bounds.first_token_s)
    require_within_a_day("--per-token", bounds.per_token_s)
