"""The plan of a load on servers that stream, and what it asks when it runs, perhaps again."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import msgspec

from fairlap.errors import InvalidRequest, reason_of
from fairlap.launch.packages.origins import with_pinned_origins
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_drawing import draw_plan, require_blocks
from fairlap.race.scenario_side import RaceSide
from fairlap.request.names import AGAIN, ContestantName
from fairlap.request.race_request import BLOCKS_OF_ONE_CONTESTANT, BLOCKS_UNTIL_DECIDED
from fairlap.request.work import Work
from fairlap.scenarios.streams.asked import StreamsAsked, asked_of, sha256_of, source_of
from fairlap.scenarios.streams.prompts import E_PROMPTS
from fairlap.scenarios.streams.scenario import StreamedAnswers

_MOST_SEED = 2**31


def work_of(asked: StreamsAsked) -> Work:
    return Work(Path(asked.load.prompts).name, 1, streams=asked.load)


def plan_of(
    asked: StreamsAsked,
    contestants: tuple[ContestantName, ...],
    *,
    blocks: int | None = None,
    budget: float | None = None,
    seed: int | None = None,
    only_winner: bool = False,
) -> Plan:
    """Draw the order of the servers in each block. Without a number of blocks, the race ends when it is decided."""
    until_decided = blocks is None and len(contestants) > 1
    usual = BLOCKS_UNTIL_DECIDED if until_decided else BLOCKS_OF_ONE_CONTESTANT
    drawn = usual if blocks is None else blocks
    require_blocks(drawn)
    return draw_plan(
        with_pinned_origins(contestants),
        (work_of(asked),),
        blocks=drawn,
        conditions="as-found",
        threads=1,
        available_cores=tuple(sorted(os.sched_getaffinity(0))),
        seed=secrets.randbelow(_MOST_SEED) if seed is None else seed,
        data_seeds=StreamedAnswers.data_seeds,
        until_decided=until_decided,
        only_winner=only_winner,
        budget_s=None if budget is None else float(budget),
    )


def asked_by(plan: Plan) -> StreamsAsked:
    """Read the prompts again. Whether servers may be sent them is decided before a plan runs."""
    [work] = plan.works
    load = work.streams
    assert load is not None
    require_same_prompts(work)
    names = [msgspec.structs.replace(each, text=each.text.removesuffix(AGAIN)) for each in plan.contestants]
    return asked_of(load, source_of(load), names, remote=True)


def require_same_prompts(work: Work) -> None:
    if work.streams is None:
        return
    path = Path(work.streams.prompts)
    try:
        found = sha256_of(path)
    except OSError as error:
        raise InvalidRequest(f"cannot read {path}: {reason_of(error)}", code=E_PROMPTS) from None
    if found != work.streams.sha256:
        raise InvalidRequest(
            f"{path} has other prompts than when the plan was drawn (SHA-256 {found[:12]}, not "
            f"{work.streams.sha256[:12]}); restore it, or start a new race",
            code=E_PROMPTS,
        )


class PlannedLoad(RaceSide):
    def require_unchanged(self, work: Work) -> None:
        require_same_prompts(work)
