"""What a load on servers that stream asks: prompts, servers, tokens, and how requests come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairlap.errors import InvalidRequest
from fairlap.request.fields.load import E_LOAD, MOST_WORKERS
from fairlap.request.names import Contestants
from fairlap.request.units import require_within_a_day
from fairlap.scenarios.streams.client import Certificates
from fairlap.scenarios.streams.prompts import E_PROMPTS, Prompt, read_prompts
from fairlap.scenarios.streams.servers import StreamServer, stream_server

MOST_TOKENS = 100_000
_MOST_RATE = 1e5


@dataclass(frozen=True)
class Bounds:
    """On ninety-nine of a hundred requests. None where there is none."""

    first_token_s: float | None = None
    per_token_s: float | None = None  # of the tokens after the first, on average

    def __bool__(self) -> bool:
        return self.first_token_s is not None or self.per_token_s is not None


@dataclass(frozen=True)
class StreamsAsked:
    """Requests are due at random at a rate, or when a user has its answer; without either, rates are searched."""

    prompts: tuple[Prompt, ...]
    prompts_file: str
    servers: tuple[StreamServer, ...]
    tokens: int
    bounds: Bounds = field(default_factory=Bounds)
    rate_per_s: float | None = None
    concurrency: int | None = None
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
    def searches(self) -> bool:
        return self.rate_per_s is None and self.concurrency is None


def streams_asked(
    prompts: Path,
    contestants: Contestants,
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
    blocks: int | None = None,
    budget: float | None = None,
    seed: int | None = None,
    baseline: str = "",
    only_winner: bool = False,
    remote: bool = False,
    wait: bool = True,
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
    servers = tuple(stream_server(each, chat=found[0].is_chat, remote=remote) for each in contestants)
    _require_prompts(servers, found)
    if baseline and baseline not in [each.name for each in servers]:
        raise InvalidRequest(f"--baseline {baseline} is not one of the contestants", code="E_BASELINE")
    certificates = Certificates(ca, verified=not insecure)
    certificates.context()
    return StreamsAsked(
        prompts=found,
        prompts_file=str(prompts),
        servers=servers,
        tokens=tokens,
        bounds=bounds,
        rate_per_s=rate,
        concurrency=concurrency,
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
