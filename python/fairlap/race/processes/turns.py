"""How the processes of a block share the machine: in rounds of short turns, or one process after the other.

In rounds, all processes of a block are alive together. Each is measured for some hundredths of a second while the
others are frozen, in an order drawn for every round, so that what the machine does meanwhile hits all of them alike.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from fairlap import quantity_text
from fairlap.errors import FairlapError
from fairlap.machine.available_memory import available_memory_bytes
from fairlap.meters.device_neighbours import DeviceNeighbours
from fairlap.meters.device_slowdown import SLOWED, DeviceSlowdown, full_memory
from fairlap.meters.disturbances import DisturbanceMeter, WaitingMeter
from fairlap.meters.memory import memory_of
from fairlap.race.planning.plan import Block, Plan
from fairlap.race.processes.one_process import ProcessRun

_ROOM = 1.25  # of what the processes of a block are known to hold
_FEWEST_ROUNDS = 2
_FIRST_ROOM_BYTES = 2**30  # beside its weights, for one of which nothing is known yet


class NoRoom(FairlapError):
    """The processes of a block do not fit into memory together. Nothing is left of them."""

    code = "E_NO_ROOM"


def run_alone(run: ProcessRun) -> None:
    with ExitStack() as stack:
        stack.callback(run.end)
        run.start()
        run.begin_to_prepare()
        run.prepared()
        run.check_answers()
        meter, waiting, on_device = DisturbanceMeter(), WaitingMeter(run.pid), DeviceNeighbours(run.devices)
        slowdown = stack.enter_context(DeviceSlowdown(run.devices))
        with slowdown.turn(run.result.device_states), waiting.turn():
            run.measure_in_one_turn()
        run.result.warnings = [*run.result.warnings, *full_memory(run.result.device_states)]
        run.result.machine = meter.readings() | waiting.readings() | on_device.readings() | slowdown.readings()
        with _neighbours_after_turns([run], run.devices):
            run.begin_after_turns()
            while run.goes_on:
                run.step_after_turns()
        run.finish_in_one_turn()
        if (energy := run.result.energy) is not None and energy.device_slowed_share is not None:
            slowed = max(run.result.machine.get(SLOWED, 0.0), energy.device_slowed_share)
            run.result.machine[SLOWED] = slowed


def run_in_rounds(
    runs: Sequence[ProcessRun],
    plan: Plan,
    block: Block,
    rounds: int,
    known_bytes: Mapping[str, int],
    may_go_on: Callable[[], bool] = lambda: True,
) -> None:
    """Run the contestants of a block in rounds.

    Raises ``NoRoom`` when there is not enough memory; ``known_bytes`` is what each contestant held before. After
    ``_FEWEST_ROUNDS``, no round begins that ``may_go_on`` does not allow.
    """
    with ExitStack() as stack:
        for run in runs:
            stack.callback(run.end)
        _start_one_by_one([run for run in runs if run.result.started == "alone"], known_bytes)
        _start_together([run for run in runs if run.result.started == "together"], known_bytes)
        for run in runs:
            with run.awake():
                run.check_answers()
                run.rounds = rounds
                run.warm_up()
        meter, waiting, on_device = (
            DisturbanceMeter(),
            [WaitingMeter(run.pid) for run in runs],
            DeviceNeighbours(plan.device),
        )
        order = random.Random(f"{plan.seed} {block.number}")
        for number in range(rounds):
            if number >= _FEWEST_ROUNDS and not may_go_on():
                break
            for place in order.sample(range(len(runs)), len(runs)):
                with runs[place].awake(), waiting[place].turn():
                    runs[place].take_a_turn()
        shared = meter.readings() | on_device.readings()
        readings = [shared | own.readings() for own in waiting]  # epochs and trials have theirs
        with _neighbours_after_turns(runs, plan.device):
            _step_in_turns(runs, order)
        for run, own in zip(runs, readings, strict=True):
            run.result.machine = own
            with run.awake():
                run.read_energy()
                run.finish_in_rounds()
            run.end()


@contextmanager
def _neighbours_after_turns(runs: Sequence[ProcessRun], device: str) -> Iterator[None]:
    """Read what others did on the device, and what slowed it down, while the processes took their steps."""
    with DeviceSlowdown(device) as slowdown:
        on_device = DeviceNeighbours(device)
        yield
        if stepped := [run.result for run in runs if run.result.machine_after_turns]:
            found = on_device.readings() | slowdown.readings()
            for result in stepped:
                result.machine_after_turns |= found


def _step_in_turns(runs: Sequence[ProcessRun], order: random.Random) -> None:
    """Run what follows the turns of calls, each process for itself, in an order drawn for every round of steps."""
    for run in runs:
        if run.goes_on:
            with run.awake():
                run.begin_after_turns()
    while going_on := [run for run in runs if run.goes_on]:
        for run in order.sample(going_on, len(going_on)):
            with run.awake():
                run.step_after_turns()


def _start_together(runs: Sequence[ProcessRun], known_bytes: Mapping[str, int]) -> None:
    _require_room(sum(_expected_bytes(run, known_bytes) for run in runs))
    for run in runs:
        run.start()
    for run in runs:
        run.begin_to_prepare()
    for run in runs:
        run.prepared()
        run.freeze()


def _start_one_by_one(runs: Sequence[ProcessRun], known_bytes: Mapping[str, int]) -> None:
    for run in runs:
        held = max((memory_of(other.pid).get("peak", 0) for other in runs if other.pid), default=0)
        _require_room(_expected_bytes(run, known_bytes, held))
        run.start()
        run.begin_to_prepare()
        run.prepared()
        run.freeze()


def _expected_bytes(run: ProcessRun, known_bytes: Mapping[str, int], most_of_others: int = 0) -> int:
    known = known_bytes.get(run.result.contestant)
    return max(most_of_others, _FIRST_ROOM_BYTES + run.weight_bytes) if known is None else known


def _require_room(bytes_: int) -> None:
    available = available_memory_bytes()
    needed = int(_ROOM * bytes_)
    if available is not None and available < needed:
        raise NoRoom(
            f"the contestants do not fit into memory together ({quantity_text.size(needed)} needed, "
            f"{quantity_text.size(available)} available)"
        )
