"""The operations of a request: those that its patterns select, without those that are too large for this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence

from fairlap import quantity_text
from fairlap.errors import InvalidRequest
from fairlap.machine.available_memory import available_memory_bytes
from fairlap.machine.files.user_folders import work_cache
from fairlap.models.names import workload_names
from fairlap.models.operations.kinds import operation_named
from fairlap.models.operations.listed import CODE, is_pattern, operations_matching
from fairlap.models.operations.operation import Operation
from fairlap.models.sources.registry import kind_of
from fairlap.race.equal_work.materials import IN_TURN, UNSEEN
from fairlap.race.planning.plan import SkippedWork
from fairlap.request.race_request import RaceRequest

LONGEST_REFERENCE_S = 60.0
"""Of all its answers. An operation whose whole name is given is raced all the same."""

_MACS_PER_CORE_S = 5e9  # of the reference, in float64: what a core without wide vectors does
_MACS_OF_A_ROW_S = 0.7e9  # where each product of one row reads all weights again


def is_operation(model: str) -> bool:
    return operation_named(model) is not None and model not in workload_names()


def selected_models(
    models: Sequence[str], notify: Callable[[str], None]
) -> tuple[tuple[str, ...], tuple[SkippedWork, ...]]:
    """Expand each pattern into its operations, each once, and list the operations that are skipped.

    Raises InvalidRequest where nothing is left of a pattern, and where an operation whose whole name is given does not
    fit.
    """
    available, free = available_memory_bytes(), _free_bytes()
    found: list[str] = []
    skipped: dict[str, str] = {}
    for model in models:
        if not is_pattern(model) or kind_of(model) is not None:
            _require_memory(model, available)
            found.append(model)
            continue
        names = {}
        for operation in (each.operation for each in operations_matching(model)):
            written = 0 if operation.name in found else _bytes_to_write(operation)
            why = _why_skipped(operation, available) or _why_no_disk(written, free)
            names[operation.name] = why
            free -= 0 if why else written
        if all(names.values()):
            name, why = next(iter(names.items()))
            raise InvalidRequest(f"none of the operations of {model!r} can be raced here; {name}: {why}", code=CODE)
        skipped |= {name: why for name, why in names.items() if why}
        found += [name for name, why in names.items() if not why and name not in found]
    for name, why in skipped.items():
        notify(f"{name} is skipped: {why}")
    return tuple(found), tuple(SkippedWork(name, why) for name, why in skipped.items())


def require_operation_options(request: RaceRequest) -> None:
    name = next((model for model in request.models if is_operation(model)), None)
    if name is None:
        return
    if request.batch not in (None, 1, (1,)):
        raise InvalidRequest(f"{name} holds all its sizes in its name; leave --batch out", code=CODE)
    for option, given in (("max-batch", request.max_batch is not None), ("recompile", request.recompile != ())):
        if given:
            why = f"{name} holds all its sizes in its name, so it has no other batch"
            raise InvalidRequest(f"--{option} calls a model at other batches, and {why}; leave it out", code=CODE)
    if request.data is not None:
        raise InvalidRequest(f"--data feeds items to a model, and {name} has none; leave it out", code=CODE)


def reference_s(operation: Operation, cores: int) -> float:
    """About how long the answers of the float64 reference take on so many cores."""
    sequential = operation.sequential_macs
    at_once = (operation.macs - sequential) / (_MACS_PER_CORE_S * cores)
    in_steps = sequential / min(_MACS_OF_A_ROW_S * operation.together, _MACS_PER_CORE_S * cores)
    return len((*IN_TURN, *UNSEEN)) * (at_once + in_steps)


def _why_skipped(operation: Operation, available: int | None) -> str:
    if why := _why_no_room(operation, available):
        return why
    seconds = reference_s(operation, len(os.sched_getaffinity(0)))
    if seconds <= LONGEST_REFERENCE_S:
        return ""
    lasts = quantity_text.rough_duration(seconds)
    return f"its float64 reference takes about {lasts} here; give its whole name to race it"


def _bytes_to_write(operation: Operation) -> int:
    """Nothing for an operation that was raced before."""
    return 0 if any((work_cache() / "work").glob(f"{operation.name}-b1-*")) else operation.bytes_on_disk


def _free_bytes() -> int:
    folder = next(folder for folder in (work_cache(), *work_cache().parents) if folder.exists())
    return shutil.disk_usage(folder).free


def _why_no_disk(written: int, free: int) -> str:
    if written <= free:
        return ""
    needed, left = quantity_text.size(written), quantity_text.size(max(free, 0))
    return f"its files take {needed}, and {left} are left for the cache"


def _require_memory(model: str, available: int | None) -> None:
    operation = operation_named(model) if is_operation(model) else None
    if operation is not None and (why := _why_no_room(operation, available)):
        raise InvalidRequest(f"{model} cannot be raced here: {why}", code=CODE)


def _why_no_room(operation: Operation, available: int | None) -> str:
    if available is None or operation.bytes_to_race <= available:
        return ""
    needed, left = quantity_text.size(operation.bytes_to_race), quantity_text.size(available)
    return f"it needs about {needed} of memory, and {left} are available"
