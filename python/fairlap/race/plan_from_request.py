"""The plan that is drawn from a request."""

from __future__ import annotations

import os
import secrets

from fairlap.engine.arguments import whole_number
from fairlap.errors import InvalidRequest
from fairlap.launch.runners import require_known
from fairlap.models.registry import find
from fairlap.race.equal_work.fed_check import require_choices, require_data
from fairlap.race.equal_work.materials import require_offered
from fairlap.race.plan import DATA_SEEDS, Limits, Measuring, Plan, draw_plan, require_blocks
from fairlap.request.race_request import (
    BLOCKS_OF_ONE_CONTESTANT,
    BLOCKS_UNTIL_DECIDED,
    DEFAULT_BLOCKS_WITH_TARGET,
    RaceRequest,
)
from fairlap.request.work import Work

_MOST_BATCH = 2**20
_MOST_SEED = 2**31


def plan_of(request: RaceRequest) -> Plan:
    works = _works(request)
    require_known(request.contestants)
    require_choices(request.contestants, fed=request.data is not None)
    device = str(request.device)
    data = require_data(request.data, works, device)
    until_decided = request.blocks is None and request.target is None and len(request.contestants) > 1
    blocks = _blocks(request, until_decided=until_decided)
    require_blocks(blocks)
    cores = tuple(sorted(os.sched_getaffinity(0)))
    return draw_plan(
        request.contestants,
        works,
        blocks=blocks,
        conditions=request.conditions,
        threads=len(cores) if request.threads is None else request.threads,
        available_cores=cores,
        seed=secrets.randbelow(_MOST_SEED) if request.seed is None else request.seed,
        data_seeds=_data_seeds(request),
        measuring=Measuring(seconds=float(request.seconds)),
        limits=Limits(memory_bytes=request.memory_limit_bytes),
        device=device,
        min_memory=request.min_memory,
        data=data,
        until_decided=until_decided,
        only_winner=request.only_winner,
    )


def _blocks(request: RaceRequest, *, until_decided: bool) -> int:
    if request.blocks is not None:
        return request.blocks
    if until_decided:
        return BLOCKS_UNTIL_DECIDED
    return BLOCKS_OF_ONE_CONTESTANT if request.target is None else DEFAULT_BLOCKS_WITH_TARGET


def _data_seeds(request: RaceRequest) -> tuple[int, ...]:
    """A race that is fed draws its data once, so one seed draws everything."""
    if request.data_seed is not None:
        return (request.data_seed,)
    return DATA_SEEDS if request.data is None else DATA_SEEDS[:1]


def _works(request: RaceRequest) -> tuple[Work, ...]:
    """Every combination, each once. A combination that the model does not support is refused."""
    works: list[Work] = []
    for model in request.models:
        spec = find(model).spec
        for work in _combinations(request, spec.name, spec.default_batch):
            require_offered(spec, work)
            if work in works:
                raise InvalidRequest(f"{work.label} is given twice")
            works.append(work)
    return tuple(works)


def _combinations(request: RaceRequest, model: str, default_batch: int) -> list[Work]:
    modes = request.mode if isinstance(request.mode, tuple) else (request.mode,)
    precisions = request.precision if isinstance(request.precision, tuple) else (request.precision,)
    batch = default_batch if request.batch is None else request.batch
    batches = batch if isinstance(batch, tuple) else (batch,)
    for each in batches:
        whole_number("batch", each, least=1, most=_MOST_BATCH)
    return [Work(model, batch, mode, precision) for mode in modes for precision in precisions for batch in batches]
