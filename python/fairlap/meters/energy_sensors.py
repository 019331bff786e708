"""Which of a machine's sensors measure the energy of work on one device: none counted twice, none left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlap.machine.hardware.cuda_devices import Board, each_device

if TYPE_CHECKING:
    from fairlap.engine._native import TelemetryField, TelemetrySource

_ENERGY = "energy_j"
_INSTANT = "power_instant_w"


@dataclass(frozen=True)
class Sensor:
    """One part of the machine, by fields of one source; the first field that is resolved gives the value."""

    name: str
    source: str
    fields: tuple[str, ...]


def sensors_for(device: str, sources: Sequence[TelemetrySource], *its_boards: Board | str) -> tuple[list[Sensor], str]:
    """For a GPU its board, and the processor where that can be read; otherwise the processor. Or why there is none.

    ``its_boards`` is the one of ``device``, or why it is not known; of several devices all of them, since a sum that
    leaves one out would be too small.
    """
    processor, why_not = _packages(sources)
    if not processor:
        processor, why_not_either = _perf_events(sources)
        why_not = "; ".join(why for why in (why_not, why_not_either) if why)
    if device == "cpu":
        return processor, "" if processor else why_not
    boards: list[Sensor] = []
    for name, its_board in zip(each_device(device), its_boards, strict=True):
        board, why_not = _board(name, sources, its_board)
        if not board:
            return [], why_not
        boards += board
    return [*boards, *processor], ""


def _packages(sources: Sequence[TelemetrySource]) -> tuple[list[Sensor], str]:
    """Choose the sensors of processor packages and memory.

    A package includes its cores and its uncore; memory is counted separately, and the whole platform (psys) would count
    both again. The same package can appear twice, through model-specific registers and through memory.
    """
    powercap = next((each for each in sources if each.name == "powercap"), None)
    if powercap is None:
        return [], "this build of fairlap does not read the energy of processors"
    if powercap.absent_because and not powercap.fields:
        return [], powercap.absent_because
    wanted = [field for field in powercap.fields if _name_of(field).startswith(("package", "dram"))]
    chosen = [field for field in wanted if "mmio" not in field.name] or wanted
    if not chosen:
        return [], f"powercap has no processor package, only {', '.join(map(_name_of, powercap.fields))}"
    for field in chosen:  # a sum that leaves one out would be too small
        if field.absent_because:
            return [], field.absent_because
    return [
        Sensor(f"powercap {field.name.removesuffix(f' {_ENERGY}')}", powercap.name, (field.name,)) for field in chosen
    ], ""


def _perf_events(sources: Sequence[TelemetrySource]) -> tuple[list[Sensor], str]:
    """Where powercap cannot be read. The package includes the events of cores and graphics."""
    perf = next((each for each in sources if each.name == "perf_energy"), None)
    if perf is None:
        return [], ""
    if perf.absent_because:
        return [], perf.absent_because
    chosen = [field for field in perf.fields if field.name.startswith(("energy-pkg ", "energy-ram "))]
    if not any(field.name.startswith("energy-pkg ") for field in chosen):
        return [], "perf has no event of a processor package"
    for field in chosen:
        if field.absent_because:
            return [], field.absent_because
    return [Sensor(f"perf {field.name.removesuffix(f' {_ENERGY}')}", perf.name, (field.name,)) for field in chosen], ""


def _name_of(zone: TelemetryField) -> str:
    """Without the folder before it."""
    return zone.name.removesuffix(f" {_ENERGY}").partition(" ")[2]


def _board(device: str, sources: Sequence[TelemetrySource], its_board: Board | str) -> tuple[list[Sensor], str]:
    boards = {each.name: each for each in sources if each.name.startswith("nvml:")}
    no_board = next((each.absent_because for each in sources if each.name == "nvml"), "NVML lists no device")
    if not boards:
        return [], no_board
    if isinstance(its_board, str):
        return [], its_board
    if not its_board.is_whole:
        return (
            [],
            f"{device} is an instance of a MIG device, and NVML reports power and energy of the whole device only",
        )
    board = boards[f"nvml:{its_board.index}"]
    present = {field.name for field in board.fields if not field.absent_because}
    fields = tuple(name for name in (_ENERGY, _INSTANT) if name in present)
    if not fields:
        reasons = {field.name: field.absent_because for field in board.fields}
        return [], f"{board.name} reports neither power nor energy: {reasons.get(_INSTANT) or board.absent_because}"
    return [Sensor(board.name, board.name, fields)], ""
