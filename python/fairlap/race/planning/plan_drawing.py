"""The blocks of a plan are drawn from its seed: their orders, data seeds, cores, padding and hash seeds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.race.planning.plan import MOST_PADDING_BYTES, Block, Plan
from fairlap.race.planning.shared_processes import Kind, in_groups, kinds_of_works, sharing, starts_processes
from fairlap.request.fields.scale import E_SCALE
from fairlap.request.names import ContestantName
from fairlap.request.race_request import MOST_BLOCKS
from fairlap.request.work import Conditions, Work
from fairlap.scenarios.process_result import Started

_MOST_HASH_SEED = 4294967295


def draw_plan(
    contestants: tuple[ContestantName, ...],
    works: tuple[Work, ...],
    *,
    blocks: int,
    conditions: Conditions | Literal["both"],
    threads: int,
    available_cores: tuple[int, ...],
    seed: int,
    data_seeds: Sequence[int] = (0,),
    until_decided: bool = False,
    **fields: Any,
) -> Plan:
    """Draw the order and the settings of every block. With both conditions each has as many blocks.

    ``fields`` are further ones of the plan, from which nothing follows but which works share processes.
    """
    require_blocks(blocks)
    for each in works:
        require_cores(each, threads, available_cores)
    plan = Plan(
        contestants=contestants,
        works=works,
        threads=threads,
        seed=seed,
        blocks=(),
        until_decided=until_decided,
        available_cores=available_cores,
        **fields,
    )
    shared = kinds_of_works(plan)
    rng = random.Random(seed)
    drawn: list[Block] = []
    kinds: list[Conditions] = ["controlled", "as-found"] if conditions == "both" else [conditions]
    seeds = _balanced(rng, data_seeds, blocks)
    for number in range(blocks):
        started: Started = "together" if until_decided and number > 0 else "alone"
        own = (None,) * len(works) if number == 0 and plan.fresh == "first" else shared
        drawn += _round(rng, plan, own, kinds, available_cores, seeds[number], started, first=len(drawn))
    return msgspec.structs.replace(plan, blocks=tuple(drawn))


def _round(
    rng: random.Random,
    plan: Plan,
    shared: Sequence[Kind | None],
    kinds: list[Conditions],
    available_cores: tuple[int, ...],
    data_seed: int,
    started: Started,
    first: int,
) -> Iterator[Block]:
    """Draw a block of every work under all kinds of conditions, and shuffle the kinds; ``first`` is its number.

    Works of one kind in ``shared`` share processes under controlled conditions.
    """
    rng.shuffle(kinds)
    works, contestants = len(plan.works), len(plan.contestants)
    for kind in kinds:
        own = shared if kind == "controlled" else (None,) * works
        first_blocks: dict[Kind, Block] = {}
        for work in in_groups(rng.sample(range(works), works), own):
            block = Block(
                number=first,
                work=work,
                conditions=kind,
                order=tuple(rng.sample(range(contestants), contestants)),
                hash_seed=rng.randint(0, _MOST_HASH_SEED),
                padding_bytes=rng.randint(0, MOST_PADDING_BYTES),
                cores=_cores(rng, kind, _cores_of(plan.works[work], plan.threads), available_cores),
                data_seed=data_seed,
                started=started,
            )
            yield sharing(block, own[work], first_blocks)
            first += 1


def on_cores(plan: Plan, available_cores: tuple[int, ...]) -> Plan:
    """Move the plan to the cores of another machine.

    Nothing else that was drawn changes, and the same cores give the same plan again.
    """
    for work in plan.works:
        require_cores(work, plan.threads, available_cores)

    def drawn(block: Block) -> tuple[int, ...]:
        count = _cores_of(plan.works[block.work], plan.threads)
        return _cores(random.Random(f"{plan.seed} {starts_processes(block)}"), block.conditions, count, available_cores)

    blocks = tuple(msgspec.structs.replace(block, cores=drawn(block)) for block in plan.blocks)
    return msgspec.structs.replace(plan, blocks=blocks, available_cores=available_cores)


def with_blocks(plan: Plan, blocks: int) -> Plan:
    """Change how many blocks each work has: the first ones stay, and further ones are drawn from the same seed.

    It then runs all of them: a budget, a target or a decision would end it by another rule.
    """
    require_blocks(blocks)
    kinds: list[Conditions] = list(dict.fromkeys(block.conditions for block in plan.blocks))
    a_round = len(plan.works) * len(kinds)
    kept = list(plan.blocks[: blocks * a_round])
    cores = plan.available_cores or tuple(sorted({core for block in plan.blocks for core in block.cores}))
    shared = kinds_of_works(plan)
    while len(kept) < blocks * a_round:
        rng = random.Random(f"{plan.seed} blocks {len(kept)}")
        used = Counter(block.data_seed for block in kept)
        data_seed = min(rng.sample(plan.data_seeds, len(plan.data_seeds)), key=used.__getitem__)
        kept += _round(rng, plan, shared, kinds, cores, data_seed, plan.blocks[-1].started, len(kept))
    return msgspec.structs.replace(plan, blocks=tuple(kept), until_decided=False, budget_s=None, target=None)


def _balanced(rng: random.Random, data_seeds: Sequence[int], blocks: int) -> list[int]:
    """Each seed as often as the others, in drawn order; the first two blocks share one, so that caches are filled."""
    drawn: list[int] = []
    while len(drawn) < blocks + 1:
        drawn += rng.sample(tuple(data_seeds), len(data_seeds))
    return [drawn[0], *drawn[:blocks]][:blocks]


def _cores_of(work: Work, threads: int) -> int | None:
    """How many a block of this work is bound to; None where its ranks run on hosts, whose cores are not drawn."""
    if work.scale is None:
        return threads
    return None if work.scale.hosts else work.scale.cores


def _cores(rng: random.Random, kind: Conditions, count: int | None, available: tuple[int, ...]) -> tuple[int, ...]:
    if kind != "controlled" or count is None:
        return available
    return tuple(sorted(rng.sample(available, count)))


def require_threads(threads: int, available_cores: Sequence[int]) -> None:
    if not 1 <= threads <= len(available_cores):
        raise InvalidRequest(
            f"threads must be between 1 and {len(available_cores)}, as many as this process has cores (got {threads})"
        )


def require_cores(work: Work, threads: int, available_cores: Sequence[int]) -> None:
    """For every rank as many as it has threads; those of hosts are not known here."""
    scale = work.scale
    if scale is None:
        require_threads(threads, available_cores)
    elif not scale.hosts and (why := scale.why_not_on(len(available_cores))):
        raise InvalidRequest(f"{why}; give fewer --threads or --processes, or --hosts", code=E_SCALE)


def require_blocks(blocks: int) -> None:
    """Check the number before the blocks are drawn, since drawing absurdly many takes long."""
    if not 1 <= blocks <= MOST_BLOCKS:
        raise InvalidRequest(f"blocks must be between 1 and {MOST_BLOCKS:,} (got {blocks:,})")
