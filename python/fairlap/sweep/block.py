"""One block of a plan, run on the machine that this process is on, and what comes of it."""

from __future__ import annotations

import os

import msgspec

from fairlap.errors import FairlapError
from fairlap.launch.worker_process import Samples
from fairlap.machine.hardware.cuda_devices import require_driver
from fairlap.machine.hardware.roofs import Roofs
from fairlap.machine.race_lock.lock import one_race
from fairlap.race.planning.plan import Plan
from fairlap.race.progress import Silence
from fairlap.race.race import Race
from fairlap.race.resume import require_same_sources
from fairlap.race.run import roofs_for
from fairlap.scenarios.process_result import ProcessResult
from fairlap.store.tables import StoredProcess, stored_process


class BlockReport(msgspec.Struct):
    """With a ``code`` nothing was measured: this machine cannot run the plan, and ``message`` gives the reason."""

    processes: tuple[StoredProcess, ...] = ()
    wall_s: dict[str, float] = {}
    roofs: Roofs | None = None
    code: str = ""
    message: str = ""


def run_block(plan: Plan, number: int, began_s: float = 0.0) -> BlockReport:
    """``began_s`` is when the block began, since the sweep did. Its contestants compile with empty caches."""
    [block] = (each for each in plan.blocks if each.number == number)
    ended: list[StoredProcess] = []

    def keep(process: ProcessResult, samples_ns: Samples) -> None:
        process.began_s += began_s
        ended.append(stored_process(process, samples_ns))

    race = Race(msgspec.structs.replace(plan, blocks=(block,)), progress=Silence(), keep=keep)
    try:
        if missing := sorted(set(block.cores) - os.sched_getaffinity(0)):
            return _refused("E_SWEEP", f"cores {', '.join(map(str, missing))} are not available there")
        require_driver(plan.device)
        require_same_sources(plan)
        with one_race(plan.all_devices):
            roofs = roofs_for(plan)
            race.run()
    except FairlapError as error:
        return _refused(error.code, str(error))
    if race.data_lost:
        return _refused("E_DATA", race.data_lost)
    return BlockReport(tuple(ended), race.shares(), roofs)


class BlockTask(msgspec.Struct, frozen=True):
    """What a machine is sent."""

    plan: Plan
    block: int
    began_s: float = 0.0


def _refused(code: str, message: str) -> BlockReport:
    return BlockReport(code=code, message=message)
