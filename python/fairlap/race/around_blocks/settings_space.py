"""The space of a search for the best settings on this machine: what is tried, what is left out, and why."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlap import quantity_text
from fairlap.frameworks.registry import framework_named
from fairlap.machine import allocators
from fairlap.machine.hardware.processor import available_cores_by_node
from fairlap.machine.root import THIS_MACHINE, Root
from fairlap.race.around_blocks.settings_search import alternatives
from fairlap.request.names import THREADS, ContestantName
from fairlap.request.work import Conditions
from fairlap.worker.process_options import ALLOCATOR, KEEP, NUMA, ONE_ARENA, why_no_allocator

_THREADS_OF_RACE = "{threads}"
_ONE_THREAD = "the race gives one thread"


@dataclass(frozen=True)
class Space:
    values: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by setting, those besides the default
    left_out: dict[str, str] = field(default_factory=dict)  # by setting, or setting=value


def space_of(
    name: ContestantName,
    threads: int,
    device: str,
    conditions: Conditions = "controlled",
    root: Root = THIS_MACHINE,
) -> Space:
    framework = framework_named(name.framework)
    found = Space(left_out=dict(framework.not_tuned))
    for setting, values in framework.tunable_for(device).items():
        _add(found, setting, *_of_race(found, setting, values, threads, conditions))
    fewer = sorted({threads // 2, 1} - {0, threads}, reverse=True)
    _add(found, THREADS, *map(str, fewer))
    if not fewer:
        found.left_out[THREADS] = _ONE_THREAD
    if device == "cpu":
        _add(found, ALLOCATOR, *_allocators(found, threads, conditions))
        _add(found, NUMA, *_nodes(found, threads, root))
    else:
        found.left_out.update(dict.fromkeys((ALLOCATOR, NUMA), f"the work is done on {device}"))
    return _without_given(found, dict(name.options))


def _add(space: Space, setting: str, *values: str) -> None:
    if values:
        space.values[setting] = values


def _of_race(space: Space, setting: str, values: tuple[str, ...], threads: int, conditions: Conditions) -> list[str]:
    """With the number of threads in its place. Further threads than those of the race are only fair on its cores."""
    kept = []
    for value in values:
        of_race = value.replace(_THREADS_OF_RACE, str(threads))
        if of_race == value or (threads > 1 and conditions == "controlled"):
            kept.append(of_race)
        else:
            why = "as found, its further threads would use further cores" if threads > 1 else _ONE_THREAD
            space.left_out[f"{setting}={of_race}"] = why
    return kept


def _allocators(space: Space, threads: int, conditions: Conditions) -> list[str]:
    if platform.libc_ver()[0] != "glibc":
        space.left_out[ALLOCATOR] = "it is chosen through the C library of Linux"
        return []
    reasons = {name: why_no_allocator(name) for name in allocators.LIBRARIES}
    reasons[KEEP] = "controlled conditions give it to every contestant" if conditions == "controlled" else ""
    reasons[ONE_ARENA] = _ONE_THREAD if threads < 2 else ""
    space.left_out.update({f"{ALLOCATOR}={name}": why for name, why in reasons.items() if why})
    return [name for name, why in reasons.items() if not why]


def _nodes(space: Space, threads: int, root: Root) -> list[str]:
    """List the NUMA nodes; one with fewer cores than the race's threads gets as many threads as it has cores."""
    nodes = available_cores_by_node(root)
    if len(nodes) < 2:
        space.left_out[NUMA] = f"this process may use the cores of {quantity_text.count(len(nodes), 'NUMA node')}"
        return []
    return [str(node) if len(cores) >= threads else f"{node}:{THREADS}={len(cores)}" for node, cores in nodes.items()]


def _without_given(space: Space, given: Mapping[str, str]) -> Space:
    """Keep what the user has set, also where another setting's value would change it."""
    values: dict[str, tuple[str, ...]] = {}
    left_out = dict(space.left_out)
    for setting, all_values in space.values.items():
        kept = []
        for value in all_values:
            [settings] = alternatives({setting: (value,)})
            if fixed := [name for name, _ in settings if name in given]:
                left_out[setting if setting in given else f"{setting}={value}"] = f"{fixed[0]} is given"
            else:
                kept.append(value)
        if kept:
            values[setting] = tuple(kept)
    return Space(values, left_out)
