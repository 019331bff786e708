"""The plans of a sweep: drawn once from request files, and the same for every machine but for the cores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.models.operations.listed import is_pattern
from fairlap.models.sources.registry import kind_of
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.request.race_request import RaceOptions, RaceRequest, request_from
from fairlap.request.suite import Selection, suite_from
from fairlap.request.toml_file import parsed_toml

CODE = "E_SWEEP"
_AFTER_BLOCKS = ("min_memory", "max_batch", "profile", "recompile")
_OF_EACH_MACHINE = tuple(name for name in RaceOptions.__struct_fields__ if name not in ("remote", "pass_env"))


def plans_of(files: Sequence[Path], notify: Callable[[str], None], *, trust: bool = False) -> dict[str, Plan]:
    """Draw the plans, by the name of the request file, or of a suite's file and the race.

    All works of a file share one error rate, as when it runs on one machine.
    The cores in them stand for those of the machines. ``trust`` lets files of users' models run code.
    """
    plans: dict[str, Plan] = {}
    for file in files:
        requests = _requests_in(file, notify)
        drawn: dict[str, Plan] = {}
        for name, request in requests.items():
            if name in plans:
                raise InvalidRequest(f"two request files are named {file.stem}; rename one of them", code=CODE)
            if why := _why_not_swept(request):
                raise InvalidRequest(f"{file}: {why}", code=CODE)
            request = msgspec.structs.replace(request, trust=trust)
            drawn[name] = plan_of(request, notify, _cores_for(request))
        works = sum(len(plan.works) for plan in drawn.values())
        plans |= {name: plan.sharing_its_errors(works) for name, plan in drawn.items()}
    return plans


def _requests_in(file: Path, notify: Callable[[str], None]) -> Mapping[str, RaceRequest]:
    """Read one request, or the races of a suite between contestants."""
    values = parsed_toml(file, "the request file")
    if "race" not in values:
        return {file.stem: request_from(file, values)}
    suite, everything = suite_from(file, values), Selection()
    for left in suite.left_out(everything, "contestants"):
        notify(
            f"{file.stem}/{left.name} is left out: `fairlap suite run` races between two sides, and a sweep does not"
        )
    return {f"{file.stem}/{race.name}": race for race in suite.selected(everything, "contestants")}


def _cores_for(request: RaceRequest) -> tuple[int, ...]:
    """As many as its largest scale takes."""
    return tuple(range(_most(request.threads) * _most(request.processes)))


def _most(asked: int | tuple[int, ...] | None) -> int:
    return max(asked) if isinstance(asked, tuple) else asked or 1


def _why_not_swept(request: RaceRequest) -> str:
    """Nothing of a request may depend on the machine that draws the plan, or on the order in which blocks end."""
    if request.blocks is None:
        return "blocks is missing; a sweep runs a fixed number of blocks, such as blocks = 12"
    if request.threads is None:
        return "threads is missing; machines have different numbers of cores, and all are given the same threads"
    if request.hosts is not None:
        return "the cluster says which machines there are; leave hosts out"
    usual = {each.name: each.default for each in msgspec.structs.fields(RaceRequest)}
    given = [name for name in (*_OF_EACH_MACHINE, *_AFTER_BLOCKS) if getattr(request, name) != usual[name]]
    if given:
        return f"a sweep runs blocks and nothing after them; leave {', '.join(given)} out"
    if best := next((name.text for name in request.contestants if name.best), ""):
        return f"{best} searches for settings on one machine; name the settings"
    if pattern := next((model for model in request.models if is_pattern(model) and kind_of(model) is None), ""):
        return f"which operations {pattern} selects depends on the machine; name them"
    return ""
