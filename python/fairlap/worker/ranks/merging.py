"""What several ranks reported, as if one worker had."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from fairlap.frameworks.contract import Unsupported
from fairlap.meters.memory import Memory
from fairlap.models.array_files import safetensors
from fairlap.models.modes import MODES
from fairlap.models.rank_parts import RANK_STATE
from fairlap.models.training.reference import LOSS
from fairlap.request.work import Mode
from fairlap.scenarios.asking import Prepared
from fairlap.scenarios.calls.latency_messages import (
    BEFORE,
    BYTES_PER_SAMPLE,
    Drawn,
    DrawnResult,
    Measured,
    MeasuredQuantity,
    Reading,
)
from fairlap.scenarios.ranks.ranks_messages import PrepareCollectives, SteppedAlone
from fairlap.worker.protocol import Answered, Prepare

Array = npt.NDArray[Any]

OTHER_WEIGHTS = "ranks differ"
"""Instead of the hash of the weights, which is then certainly not the one that they should have."""


def merged_prepared(
    replies: Sequence[Prepared], hosts: Sequence[str], request: Prepare | PrepareCollectives
) -> Prepared:
    first, hashes = replies[0], {reply.weights_hash for reply in replies}
    return msgspec.structs.replace(
        first,
        in_force=_in_force([reply.in_force for reply in replies], request),
        weights_hash=first.weights_hash if len(hashes) == 1 else OTHER_WEIGHTS,
        hosts=tuple(hosts),
    )


def _in_force(settings: Sequence[Mapping[str, str]], request: Prepare | PrepareCollectives) -> dict[str, str]:
    """Where ranks differ, each value with its ranks; of a setting that is compared with the request, a wrong one."""
    requested = {"threads": str(request.threads), "precision": request.precision}
    found = {}
    for name in dict.fromkeys(name for each in settings for name in each):
        values = [each.get(name, "unknown: this rank does not report it") for each in settings]
        wrong = [value for value in values if value != requested.get(name, value)]
        if len(set(values)) == 1:
            found[name] = values[0]
        elif name in requested and wrong:
            found[name] = wrong[0]
        else:
            found[name] = "; ".join(f"rank {number}: {value}" for number, value in enumerate(values))
    return found


def merged_answered(replies: Sequence[Answered]) -> Answered:
    return Answered(max(reply.seconds for reply in replies), _reading([reply.reading for reply in replies]))


def _reading(readings: Sequence[Reading]) -> Reading:
    """Choose the shortest reading.

    A machine interrupts one rank, and a contestant that leaves its work for later does so in all of them.
    """
    shortest = min(readings, key=lambda each: each.read_s)
    return msgspec.structs.replace(shortest, deferred=next((each.deferred for each in readings if each.deferred), ""))


def merge_files(parts: Sequence[Path], path: Path, mode: Mode) -> None:
    """Merge the answers of the ranks, which are then removed."""
    arrays = [dict(safetensors.read(part)) for part in parts]
    safetensors.write(path, merged_arrays(arrays, mode))
    del arrays
    for part in parts:
        part.unlink(missing_ok=True)


def merged_arrays(ranks: Sequence[Mapping[str, Array]], mode: Mode) -> dict[str, Array]:
    """Merge the arrays; ``<number>/`` before a name is that of a drawn call."""
    first, *others = ranks
    found: dict[str, Array] = {}
    for name, array in first.items():
        drawn, bare = _split(name)
        if not MODES[mode].trains:
            found[name] = np.concatenate([_of(rank, name, place) for place, rank in enumerate(ranks)])
        elif bare == LOSS:
            losses = [_of(rank, name, place) for place, rank in enumerate(ranks)]
            found[name] = np.asarray(np.mean(losses, axis=0, dtype=np.float64), dtype=array.dtype)
        else:
            found[name] = array
            if not bare.startswith(BEFORE):
                for place, rank in enumerate(others, start=1):
                    found[f"{drawn}{RANK_STATE}{place}/{bare}"] = _of(rank, name, place)
    return found


def _split(name: str) -> tuple[str, str]:
    number, slash, bare = name.partition("/")
    return (number + slash, bare) if slash and number.isdecimal() else ("", name)


def _of(arrays: Mapping[str, Array], name: str, rank: int) -> Array:
    if name not in arrays:
        raise Unsupported(f"the answer of rank {rank} lacks {name}, which rank 0 has")
    return arrays[name]


def merged_measured(replies: Sequence[tuple[Measured, bytes]]) -> tuple[Measured, list[memoryview]]:
    """Each sample is that of the slowest rank."""
    ranks = [_samples(measured, raw) for measured, raw in replies]
    messages = [measured for measured, _ in replies]
    first = messages[0]
    quantities: list[MeasuredQuantity] = []
    values: list[Array] = []
    for quantity in first.quantities:
        of_ranks = [rank.get(quantity.name, np.zeros(0)) for rank in ranks]
        if len({len(each) for each in of_ranks}) == 1:
            quantities.append(quantity)
            values.append(np.ascontiguousarray(np.max(of_ranks, axis=0), dtype="<f8"))
    counts: Counter[str] = Counter()
    for message in messages:
        counts.update(message.counts)
    warnings = {notice.code: notice for message in reversed(messages) for notice in message.warnings}
    merged = msgspec.structs.replace(
        first,
        quantities=quantities,
        elapsed_s=max(message.elapsed_s for message in messages),
        bytes=BYTES_PER_SAMPLE * sum(len(each) for each in values),
        counts=dict(counts),
        warnings=list(warnings.values()),
        drawn=_drawn([message.drawn for message in messages]),
    )
    return merged, [each.data.cast("B") for each in values]


def _samples(measured: Measured, raw: bytes) -> dict[str, Array]:
    values = np.frombuffer(raw, dtype="<f8")
    found: dict[str, Array] = {}
    begin = 0
    for quantity in measured.quantities:
        found[quantity.name] = values[begin : begin + quantity.count]
        begin += quantity.count
    return found


def _drawn(ranks: Sequence[Drawn]) -> Drawn:
    calls = []
    for of_one_call in zip(*(rank.calls for rank in ranks), strict=False):
        cpu_ns = [each.cpu_ns for each in of_one_call]
        known_ns = [each for each in cpu_ns if each is not None]
        calls.append(
            DrawnResult(
                of_one_call[0].number,
                max(each.call_ns for each in of_one_call),
                _reading([each.reading for each in of_one_call]),
                sum(known_ns) if len(known_ns) == len(cpu_ns) else None,
            )
        )
    cores = [rank.cores_wanted for rank in ranks if rank.cores_wanted is not None]
    return Drawn(tuple(calls), sum(cores) if cores else None)


def merged_steps(replies: Sequence[SteppedAlone]) -> SteppedAlone:
    """``together_ns`` of each is its own, and it waits for the others in it: the longest counts."""
    if why := next((reply.why for reply in replies if reply.why), ""):
        return SteppedAlone(why=why)
    together = np.max([reply.together_ns for reply in replies], axis=0)
    return SteppedAlone(tuple(map(float, together)), tuple(reply.alone_ns[0] for reply in replies))


def merged_memory(ranks: Sequence[Memory]) -> Memory:
    """Of all together. Memory that several of them share counts in each, but for ``proportional``."""
    layers = dict.fromkeys(name for rank in ranks for name in (*rank.bytes, *rank.absent))
    found = {name: sum(rank.bytes[name] for rank in ranks) for name in layers if all(name in r.bytes for r in ranks)}
    absent = {
        name: next((rank.absent[name] for rank in ranks if name in rank.absent), "not all of its ranks report it")
        for name in layers
        if name not in found
    }
    return Memory(found, absent)
