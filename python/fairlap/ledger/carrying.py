"""A run as one JSON file with everything in it, samples too, to be taken into another store under the same id.

It is a saved run with more in it: what reads the file of ``fairlap compare --json`` reads this one as well. That
file can be taken in, too; it has no samples, and its id follows from its content.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from fairlap.errors import WrongRequest
from fairlap.ledger.finding import State
from fairlap.ledger.kept_laps import BYTES_OF_A_SAMPLE, LapToKeep, lap_to_keep
from fairlap.ledger.run_ids import id_of, is_an_id
from fairlap.ledger.schema import Row
from fairlap.race.kept_before import all_blocks_ran, search_is_over
from fairlap.race.saving import RESULTS_FORMAT, SavedRun
from fairlap.whole_files import write_for_user


class CarriedSamples(msgspec.Struct):
    """Of one quantity of one lap."""

    block: int
    contestant: str
    quantity: str
    ns: bytes  # little-endian float64; in the file as base64


class CarriedRun(SavedRun):
    id: str = ""
    state: State | None = None  # a file of ``fairlap compare --json`` does not say
    rows: list[Row] = msgspec.field(default_factory=list)
    samples: list[CarriedSamples] = msgspec.field(default_factory=list)


def carried(
    run_id: str, state: State, run: SavedRun, rows: list[Row], samples: Iterable[tuple[int, str, str, bytes]]
) -> CarriedRun:
    fields = {name: getattr(run, name) for name in SavedRun.__struct_fields__}
    return CarriedRun(**fields, id=run_id, state=state, rows=rows, samples=[CarriedSamples(*each) for each in samples])


def write_carried(file: Path, run: CarriedRun) -> None:
    """Under its own name only when it is whole."""
    write_for_user(file, msgspec.json.encode(run))


def read_carried(file: Path) -> CarriedRun:
    try:
        text = file.read_bytes()
        run = msgspec.json.decode(text, type=CarriedRun)
    except OSError as error:
        raise WrongRequest(f"{file} cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise WrongRequest(f"{file} is not a run: {error}") from None
    if run.format != RESULTS_FORMAT:
        raise WrongRequest(f"{file} has format {run.format}; this fairlap reads {RESULTS_FORMAT}")
    if not run.id:
        run.id = id_of(run.began_at, content=text)
    if not is_an_id(run.id):
        raise WrongRequest(f"{file} is not a run: {run.id!r} is no id of a run")
    if any(row.run != run.id for row in run.rows):
        raise WrongRequest(f"{file} is not a run: it has rows of another one")
    return run


def state_of(run: CarriedRun) -> State:
    """What was not said follows from the laps: a race that ends by itself before its last block says why."""
    if run.state is not None:
        return run.state
    over = (run.ended_early or all_blocks_ran(run.plan, run.laps)) and search_is_over(run.plan, run.laps)
    return "finished" if over else "interrupted"


def laps_with_samples(run: CarriedRun, file: Path) -> list[LapToKeep]:
    laps = {(lap.block, lap.contestant): lap_to_keep(lap) for lap in run.laps}
    if len(laps) < len(run.laps):
        raise WrongRequest(f"{file} is not a run: it holds a lap twice")
    for each in run.samples:
        lap = laps.get((each.block, each.contestant))
        if lap is None or each.quantity in lap.samples or len(each.ns) % BYTES_OF_A_SAMPLE:
            whose = f"{each.contestant} in block {each.block}"
            raise WrongRequest(f"{file} is not a run: the samples of {whose} do not fit its laps")
        lap.samples[each.quantity] = each.ns
    return list(laps.values())
