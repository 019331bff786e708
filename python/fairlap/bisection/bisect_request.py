"""What ``fairlap bisect`` is asked: two ends of a history, what races at each point of it, and how sure to be."""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path
from typing import Annotated

import msgspec

from fairlap.bisection.points.history import History
from fairlap.bisection.search import MOST_RACES
from fairlap.errors import InvalidRequest
from fairlap.frameworks.registry import framework_named
from fairlap.frameworks.suites.child_process import Member
from fairlap.judgement.judge_request import Benchmark, JudgeRequest, SearchedQuantity, require_fitting
from fairlap.models.names import is_function
from fairlap.request.names import contestant_named
from fairlap.request.units import Seconds
from fairlap.request.work import Mode, Precision
from fairlap.suite.found_suites import suite_hash

E_BISECT = "E_BISECT"
_LEAST_SURE = 0.5
OF_STARTS = ("time_to_first", "compile_time")
"""Known only of processes that start alone, as they do where the number of blocks is fixed."""
BLOCKS_OF_STARTS = 12


class RacedModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model on a framework, in the words of a race; its inputs are those of the benchmark."""

    model: str = ""
    on: str = ""
    batch: int | None = None
    mode: Mode = "infer"
    precision: Precision = "fp32"
    shapes: tuple[str, ...] = ()
    dims: str | None = None
    trust: bool = False


class BisectRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``budget`` and ``races`` are those of the whole search."""

    good: str
    bad: str
    releases: tuple[str, ...] = ()  # a package, or wheels, folders and patterns of wheels; commits where it is empty
    repository: Path = Path()
    benchmark: Benchmark = Benchmark()
    suite: Path | None = None  # existing benchmarks, of which one races instead
    only: str = ""  # its name, or a part or regular expression of it
    member: Member | None = None  # that one, where it is of asv or pytest-benchmark
    model: RacedModel = RacedModel()
    prepare: str = ""
    quantity: SearchedQuantity = "wall"
    sure: float = 0.99
    budget: Seconds | None = None
    races: Annotated[int, msgspec.Meta(ge=1)] = MOST_RACES
    blocks: Annotated[int, msgspec.Meta(ge=2)] | None = None  # of each race
    threads: int | None = None
    seconds: Seconds | None = None
    pass_env: tuple[str, ...] = ()
    wait: bool = True  # while another race uses the same cores; an error otherwise

    @property
    def imports_from_here(self) -> bool:
        """Whether what races is a function of the user, for which the current folder is searched."""
        return bool(self.benchmark.call) or is_function(self.model.model)


def checked(request: BisectRequest) -> BisectRequest:
    """Refuse what cannot be searched, before anything runs."""
    benchmark, model = request.benchmark, request.model
    if sum(map(bool, (benchmark.call, benchmark.command, model.model, request.suite))) != 1:
        raise InvalidRequest("give one of MODEL, --call, --command and --suite", code=E_BISECT)
    _require_for_suite(request)
    if model.model:
        _require_framework(model)
    if not model.model and model != RacedModel():
        raise InvalidRequest("--on, --batch, --mode, --precision and --trust are for a MODEL", code=E_BISECT)
    if model.model and (benchmark.reference or benchmark.reported or benchmark.same_output):
        raise InvalidRequest("--reference is for --call, --reported and --same-output for --command", code=E_BISECT)
    require_fitting(benchmark, request.quantity, E_BISECT)
    if not _LEAST_SURE < request.sure < 1:
        raise InvalidRequest(f"--sure must be above 50 % and below 100 % (got {request.sure:.4g})", code=E_BISECT)
    if request.releases:
        _require_for_releases(request)
    return request


def _require_for_suite(request: BisectRequest) -> None:
    """Refuse what the benchmark of a suite decides itself."""
    if request.only and request.suite is None:
        raise InvalidRequest("--only chooses a benchmark of a --suite; name one", code=E_BISECT)
    if request.suite is not None and request.benchmark != Benchmark():
        raise InvalidRequest("--suite has its benchmark's options; leave others out", code=E_BISECT)
    if request.suite is not None and request.quantity != "wall":
        raise InvalidRequest("a benchmark is searched by what it measures; leave --quantity out", code=E_BISECT)


def _require_framework(asked: RacedModel) -> None:
    """Refuse what is not one framework, which can be imported from a tree or installed."""
    if not asked.on:
        raise InvalidRequest(f"name the framework that runs {asked.model}, such as --on torch", code=E_BISECT)
    on = contestant_named(asked.on)
    if on.program or on.url or on.best or not framework_named(on.framework).packages:
        raise InvalidRequest(f"--on {asked.on}: name one framework with its options, such as torch", code=E_BISECT)


def _require_for_releases(request: BisectRequest) -> None:
    if request.benchmark.command:
        raise InvalidRequest("releases race a MODEL or --call; a command does not run in an environment", code=E_BISECT)
    if request.prepare or request.repository != Path():
        raise InvalidRequest("--prepare and --repository are for commits; leave them out", code=E_BISECT)
    if request.benchmark.inputs and request.benchmark.call and not request.benchmark.reference:
        raise InvalidRequest(
            "--inputs takes --reference too, a callable of the current folder, since no release is installed here",
            code=E_BISECT,
        )


def race_between(request: BisectRequest, blocks: int | None) -> JudgeRequest:
    """Ask for a race of two points, as far as it is the same for all of them."""
    if blocks is None and request.quantity in OF_STARTS:
        blocks = BLOCKS_OF_STARTS
    return JudgeRequest(
        benchmark=request.benchmark,
        blocks=blocks,
        threads=request.threads,
        seconds=request.seconds,
        pass_env=request.pass_env,
        wait=request.wait,
    )


def key_of(request: BisectRequest, history: History) -> str:
    """Name what was raced: a search goes on from readings of the same race on the same machine alone."""
    raced = [
        history.of,
        history.content,
        *(each.id for each in history.points),
        msgspec.json.encode(request.benchmark).decode(),
        msgspec.json.encode(request.model).decode(),
        request.prepare,
        request.quantity,
        str(request.threads),
        str(request.seconds),
        platform.node(),
        str(Path.cwd()) if request.releases or request.model.model else "",
    ]
    if request.suite is not None:
        raced += [suite_hash(request.suite), msgspec.json.encode(request.member).decode()]
    return hashlib.sha256("\0".join(raced).encode()).hexdigest()[:16]
