"""What a user asks of a race, in a TOML file or on the command line, and the plan that is drawn from it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from fairlap.engine.arguments import positive_number, whole_number
from fairlap.errors import InvalidRequest
from fairlap.launch.runners import require_known
from fairlap.models.registry import find
from fairlap.race.fed_check import require_choices, require_data
from fairlap.race.materials import require_offered
from fairlap.race.plan import Limits, Measuring, Plan, draw_plan, require_blocks
from fairlap.request.names import contestants_named
from fairlap.request.race_request import _BLOCKS, _BLOCKS_UNLESS_ENDED, Outputs, RaceRequest
from fairlap.request.toml_file import Key
from fairlap.request.units import duration_s_in, share_in
from fairlap.request.work import Work

_MOST_BATCH = 2**20
_MOST_SEED = 2**31


Refuse = Callable[[Key, str], InvalidRequest]
"""Makes the error for a key: it may know where the key stands."""


def plan_of(asked: RaceRequest, refuse: Refuse) -> Plan:
    cores = tuple(sorted(os.sched_getaffinity(0)))
    works = _works(asked, refuse)
    with saying("contestants", refuse):
        contestants = contestants_named(",".join(asked.contestants))
        require_known(contestants)
        require_choices(contestants, fed=asked.data is not None)
    device = "cuda:0" if asked.device == "cuda" else asked.device
    with saying("data", refuse):
        data = require_data(asked.data, works, device)
    with saying("seconds", refuse):
        measuring = Measuring(seconds=positive_number("seconds", asked.seconds))
    with saying("blocks", refuse):
        require_blocks(_blocks(asked))
    with saying("threads", refuse):
        return draw_plan(
            contestants,
            works,
            blocks=_blocks(asked),
            conditions=asked.conditions,
            threads=len(cores) if asked.threads is None else asked.threads,
            available_cores=cores,
            seed=secrets.randbelow(_MOST_SEED) if asked.seed is None else asked.seed,
            measuring=measuring,
            limits=Limits(memory_bytes=asked.memory_limit_bytes),
            device=device,
            min_memory=asked.min_memory,
            data=data,
        )


def ending_of(asked: RaceRequest, refuse: Refuse) -> tuple[float | None, float | None]:
    """The target as a share and the budget in seconds, each None when nobody asked for it."""
    with saying("target", refuse):
        target = None if asked.target is None else share_in(str(asked.target))
    with saying("budget", refuse):
        budget_s = None if asked.budget is None else duration_s_in(str(asked.budget))
    return target, budget_s


def output_files(outputs: Outputs, refuse: Refuse) -> dict[str, Path]:
    """By format. Whether they can be written is asked before the race, not after it."""
    files = {name: Path(text) for name, text in msgspec.structs.asdict(outputs).items() if text}
    taken: dict[str, str] = {}
    for name, file in files.items():
        where = os.path.realpath(file)
        if (other := taken.setdefault(where, name)) != name and not _is_device(file):
            raise refuse(("outputs", name), f"{file} cannot be written as {name}: it will hold {other}")
        if not file.parent.is_dir():
            raise refuse(("outputs", name), f"{file} cannot be written: {file.parent} is not a folder")
        if file.is_dir():
            raise refuse(("outputs", name), f"{file} cannot be written: it is a folder")
        if Path(where).is_symlink():
            raise refuse(("outputs", name), f"{file} cannot be written: it is a link to itself")
    return files


def _is_device(file: Path) -> bool:
    """Such as /dev/stdout, which takes one after the other."""
    return file.exists() and not file.is_file()


@contextmanager
def saying(key: str, refuse: Refuse) -> Iterator[None]:
    """What is refused inside is refused for this key."""
    try:
        yield
    except InvalidRequest as error:
        raise refuse((key,), str(error)) from None


def _blocks(asked: RaceRequest) -> int:
    if asked.blocks is not None:
        return asked.blocks
    return _BLOCKS if asked.target is None and asked.budget is None else _BLOCKS_UNLESS_ENDED


def _works(asked: RaceRequest, refuse: Refuse) -> tuple[Work, ...]:
    """Every combination, each once; one that a model lacks is refused."""
    works: list[Work] = []
    for model in asked.models:
        with saying("models", refuse):
            spec = find(model).spec
        for work in _combinations(asked, spec.name, spec.default_batch, refuse):
            with saying("mode" if work.mode not in spec.modes else "precision", refuse):
                require_offered(spec, work)
            if work in works:
                raise refuse(("models",), f"{work.label} is asked for twice")
            works.append(work)
    return tuple(works)


def _combinations(asked: RaceRequest, model: str, default_batch: int, refuse: Refuse) -> list[Work]:
    modes = asked.mode if isinstance(asked.mode, list) else [asked.mode]
    precisions = asked.precision if isinstance(asked.precision, list) else [asked.precision]
    batches = asked.batch if isinstance(asked.batch, list) else [default_batch if asked.batch is None else asked.batch]
    for batch in batches:
        with saying("batch", refuse):
            whole_number("batch", batch, least=1, most=_MOST_BATCH)
    return [Work(model, batch, mode, precision) for mode in modes for precision in precisions for batch in batches]
