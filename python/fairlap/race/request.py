"""What a user asks of a race, in a TOML file or on the command line, and the plan that is drawn from it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from fairlap.engine.wishes import positive_number, whole_number
from fairlap.errors import WrongRequest
from fairlap.race.contestants import require_known
from fairlap.race.fed_wishes import require_choices, require_data
from fairlap.race.materials import require_offered
from fairlap.race.naming import contestants_named
from fairlap.race.plan import MOST_BLOCKS, Conditions, Limits, Measuring, Plan, Work, draw_plan, require_blocks
from fairlap.shares_and_durations import duration_s_in, share_in
from fairlap.toml_files import Key
from fairlap.workloads.registry import find
from fairlap.workloads.spec import Mode, Precision

_BLOCKS = 12
_BLOCKS_UNLESS_ENDED = 60  # when something else ends the race
_MOST_BATCH = 2**20
_MOST_SEED = 2**31

_Each = TypeVar("_Each")
_Some = Annotated[list[_Each], msgspec.Meta(min_length=1)]
_AtLeast0 = Annotated[int, msgspec.Meta(ge=0)]
_AtLeast1 = Annotated[int, msgspec.Meta(ge=1)]

Refuse = Callable[[Key, str], WrongRequest]
"""Makes the error for a key: it may know where the key stands."""


def _about(meaning: str, **limits: Any) -> msgspec.Meta:
    return msgspec.Meta(description=meaning, **limits)


class Outputs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Files that the race ends with. A relative path starts at the folder that fairlap is called in."""

    json: Annotated[str, _about("Everything, as JSON.")] = ""
    csv: Annotated[str, _about("The rows, as comma-separated values.")] = ""
    md: Annotated[str, _about("The rows, as Markdown for a pull request's comment.")] = ""
    html: Annotated[str, _about("A report, as one page that needs no network.")] = ""


class RaceRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A race as a person writes it down. Every combination of model, mode, precision and batch is raced."""

    models: Annotated[_Some[str], _about("Which models race; `fairlap list models`.")]
    contestants: Annotated[_Some[str], _about('Who races, such as "torch:compile" or "jax==0.4.30".')]
    batch: Annotated[int | _Some[int] | None, _about("Items in one call; the model's own unless given.")] = None
    mode: Annotated[Mode | _Some[Mode], _about("Inference, or the loss and its gradients.")] = "infer"
    precision: Annotated[Precision | _Some[Precision], _about("What everyone computes in.")] = "fp32"
    device: Annotated[str, msgspec.Meta(description="cpu, cuda or cuda:N.", pattern=r"^(cpu|cuda(:\d{1,2})?)$")] = "cpu"
    data: Annotated[
        str | None, _about('What the calls are fed: "synthetic", or a .npy file or folder; nothing unless given.')
    ] = None
    threads: Annotated[_AtLeast1 | None, _about("For every contestant; all cores unless given.")] = None
    blocks: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=MOST_BLOCKS)] | None,
        _about("Fresh processes for every contestant; 12 unless given, 60 with a target or a budget."),
    ] = None
    target: Annotated[float | str | None, _about('End when every interval is as narrow: 0.01 or "1%".')] = None
    budget: Annotated[float | str | None, _about('End before this is over: seconds, or "10m".')] = None
    conditions: Annotated[Conditions, _about("Controlled, with as-found processes beside; or as found.")] = "controlled"
    seconds: Annotated[float, _about("Measured in each process.", gt=0)] = 0.5
    seed: Annotated[_AtLeast0 | None, _about("Draws orders and processes; drawn unless given.")] = None
    memory_limit_bytes: Annotated[_AtLeast1 | None, _about("Address space that a worker may take.")] = None
    min_memory: Annotated[
        bool, _about("Look for the smallest memory in which each contestant still runs, when the blocks have run.")
    ] = False
    baseline: Annotated[str, _about("Whom the others are held against in the rows; the fastest unless given.")] = ""
    price: Annotated[str, _about('What an hour costs, "1.212/h", or a name in the table of prices.')] = ""
    outputs: Annotated[Outputs, _about("Files that the race ends with.")] = Outputs()


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
    except WrongRequest as error:
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
