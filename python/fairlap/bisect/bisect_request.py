"""What ``fairlap bisect`` is asked: two ends of a history, what races at each commit, and how sure to be."""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path
from typing import Annotated

import msgspec

from fairlap.bisect.search import MOST_RACES
from fairlap.errors import InvalidRequest
from fairlap.judgement.judge_request import Benchmark, JudgeRequest, Quantity, require_fitting
from fairlap.request.units import Seconds

E_BISECT = "E_BISECT"
_LEAST_SURE = 0.5


class BisectRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``budget`` and ``races`` are those of the whole search."""

    good: str
    bad: str
    repository: Path = Path()
    benchmark: Benchmark = Benchmark()
    prepare: str = ""
    quantity: Quantity = "wall"
    sure: float = 0.99
    budget: Seconds | None = None
    races: Annotated[int, msgspec.Meta(ge=1)] = MOST_RACES
    blocks: Annotated[int, msgspec.Meta(ge=2)] | None = None  # of each race
    threads: int | None = None
    seconds: Seconds | None = None
    pass_env: tuple[str, ...] = ()
    wait: bool = True  # while another race uses the same cores; an error otherwise


def checked(request: BisectRequest) -> BisectRequest:
    """Refuse what cannot be searched, before anything runs."""
    if bool(request.benchmark.call) == bool(request.benchmark.command):
        raise InvalidRequest("give one of --call and --command", code=E_BISECT)
    require_fitting(request.benchmark, request.quantity, E_BISECT)
    if not _LEAST_SURE < request.sure < 1:
        raise InvalidRequest(f"--sure must be above 50 % and below 100 % (got {request.sure:.4g})", code=E_BISECT)
    return request


def race_between(request: BisectRequest, base: Path, change: Path, blocks: int | None) -> JudgeRequest:
    return JudgeRequest(
        base=base,
        change=change,
        benchmark=request.benchmark,
        quantity=request.quantity,
        blocks=blocks,
        threads=request.threads,
        seconds=request.seconds,
        pass_env=request.pass_env,
        wait=request.wait,
    )


def key_of(request: BisectRequest, repository: Path, good: str, bad: str) -> str:
    """Name what was raced: a search goes on from readings of the same race on the same machine alone."""
    raced = [
        str(repository),
        good,
        bad,
        msgspec.json.encode(request.benchmark).decode(),
        request.prepare,
        request.quantity,
        str(request.threads),
        str(request.seconds),
        platform.node(),
    ]
    return hashlib.sha256("\0".join(raced).encode()).hexdigest()[:16]
