"""A plan is data: every process that will run, in its order, with the seeds that drew it; it can be replayed."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.request.names import ContestantName
from fairlap.request.race_request import MOST_BLOCKS
from fairlap.request.work import Conditions, Work

PLAN_FORMAT = 1
MOST_AS_FOUND_BLOCKS = 6
_MOST_PADDING_BYTES = 4096
_MOST_HASH_SEED = 4294967295


class Limits(msgspec.Struct, frozen=True):
    """How long each part of a worker's life may take, in seconds, and how much memory it may ask for."""

    start_s: float = 60.0
    prepare_s: float = 900.0
    answer_s: float = 300.0
    measure_s: float = 600.0
    memory_bytes: int | None = None


class Measuring(msgspec.Struct, frozen=True):
    """How long a contestant is measured in each process."""

    seconds: float = 0.5
    samples: int | None = None


class Block(msgspec.Struct, frozen=True):
    """Every contestant once, each in a fresh process, in a drawn order. All in a block share what was drawn."""

    number: int
    work: int  # its place in the plan's works
    conditions: Conditions
    order: tuple[int, ...]  # places in the plan's contestants
    hash_seed: int
    padding_bytes: int  # of environment, which shifts the stack (Mytkowicz and others, 2009)
    cores: tuple[int, ...]


class Plan(msgspec.Struct, frozen=True):
    contestants: tuple[ContestantName, ...]
    works: tuple[Work, ...]
    threads: int
    seed: int  # draws orders and settings of processes
    data_seed: int  # draws weights and inputs
    blocks: tuple[Block, ...]
    measuring: Measuring = Measuring()
    limits: Limits = Limits()
    device: str = "cpu"
    min_memory: bool = False  # the smallest memory of each contestant is looked for when the blocks have run
    data: str = ""  # what the measured calls are fed: nothing, "synthetic", or a path
    format: int = PLAN_FORMAT

    @property
    def headline(self) -> Conditions:
        """The conditions that the verdict is about; the others are shown after them."""
        controlled = any(block.conditions == "controlled" for block in self.blocks)
        return "controlled" if controlled else "as-found"

    def process_count(self) -> int:
        return sum(len(block.order) for block in self.blocks)


def draw_plan(
    contestants: tuple[ContestantName, ...],
    works: tuple[Work, ...],
    *,
    blocks: int,
    conditions: Conditions,
    threads: int,
    available_cores: tuple[int, ...],
    seed: int,
    data_seed: int = 0,
    measuring: Measuring | None = None,
    limits: Limits | None = None,
    device: str = "cpu",
    min_memory: bool = False,
    data: str = "",
    as_found_beside: bool = True,
) -> Plan:
    """Draw the order of every block. Controlled blocks have as-found ones between them, at most six."""
    require_blocks(blocks)
    if not 1 <= threads <= len(available_cores):
        raise InvalidRequest(
            f"threads must be between 1 and {len(available_cores)}, the cores available to this process (got {threads})"
        )
    rng = random.Random(seed)
    drawn: list[Block] = []
    for number in range(blocks):
        kinds: list[Conditions] = [conditions]
        if as_found_beside and conditions == "controlled" and number < MOST_AS_FOUND_BLOCKS:
            kinds.append("as-found")
            rng.shuffle(kinds)
        for kind in kinds:
            for work in rng.sample(range(len(works)), len(works)):
                drawn.append(_draw_block(rng, len(drawn), work, kind, len(contestants), threads, available_cores))
    return Plan(
        contestants,
        works,
        threads,
        seed,
        data_seed,
        tuple(drawn),
        measuring or Measuring(),
        limits or Limits(),
        device,
        min_memory,
        data,
    )


def require_blocks(blocks: int) -> None:
    """Checked before the blocks are drawn, since drawing absurdly many takes long."""
    if not 1 <= blocks <= MOST_BLOCKS:
        raise InvalidRequest(f"blocks must be between 1 and {MOST_BLOCKS:,} (got {blocks:,})")


def _draw_block(
    rng: random.Random, number: int, work: int, kind: Conditions, contestants: int, threads: int, cores: tuple[int, ...]
) -> Block:
    return Block(
        number=number,
        work=work,
        conditions=kind,
        order=tuple(rng.sample(range(contestants), contestants)),
        hash_seed=rng.randint(0, _MOST_HASH_SEED),
        padding_bytes=rng.randint(0, _MOST_PADDING_BYTES),
        cores=tuple(sorted(rng.sample(cores, threads))) if kind == "controlled" else cores,
    )


def save_plan(plan: Plan, path: Path) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(plan), indent=2))


def load_plan(path: Path) -> Plan:
    """Read a saved plan; errors name the place in the file."""
    try:
        plan = msgspec.json.decode(path.read_bytes(), type=Plan)
    except OSError as error:
        raise InvalidRequest(f"the plan {path} cannot be read: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise InvalidRequest(f"{path} is not a plan: {error}") from None
    if plan.format != PLAN_FORMAT:
        raise InvalidRequest(f"{path} has plan format {plan.format}; this fairlap reads {PLAN_FORMAT}")
    for block in plan.blocks:
        if not 0 <= block.work < len(plan.works) or sorted(block.order) != list(range(len(plan.contestants))):
            raise InvalidRequest(f"{path}: block {block.number} does not run every contestant once")
    return plan
