"""The work that a request names: the files of weights and inputs that the parent wrote, as a workload."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlap.models.array_files import safetensors
from fairlap.models.arrays import repeated_items
from fairlap.models.modes import MODES
from fairlap.models.rank_parts import parts_of
from fairlap.models.registry import spec_at, spec_with
from fairlap.models.spec import BATCH_LABELS, LABELS
from fairlap.models.workload import Workload
from fairlap.scenarios.calls.timed_inputs import in_memory

if TYPE_CHECKING:
    from fairlap.models.arrays import Arrays
    from fairlap.models.spec import Spec
    from fairlap.worker.protocol import Prepare


def workload_of(request: Prepare) -> tuple[Workload, list[Arrays]]:
    """And its two sets of inputs: the first one, which the workload holds too, and the changed one."""
    if request.free_sizes:
        spec = spec_with(request.workload, request.free_sizes)
    else:
        spec = spec_at(request.workload, request.sizes).in_mode(request.mode)
    weights = safetensors.read(Path(request.weights))
    names = [tensor.name for tensor in spec.inputs]
    batches_have_labels = MODES[request.mode].batches_have_labels
    sets: list[Arrays] = []
    for file in (request.inputs, request.changed):
        arrays = _for_batch(safetensors.read(Path(file)), spec, request.batch)
        of_set = {name: arrays[name] for name in names}
        if batches_have_labels and request.labels is not None:
            of_set[LABELS] = arrays[BATCH_LABELS]
        sets.append(of_set)
    labels = None
    if not batches_have_labels and request.labels is not None:
        labels = _for_batch(safetensors.read(Path(request.labels)), spec, request.batch)[LABELS]
    batch, part = request.batch, part_of_rank(request)
    if part is not None:
        sets = [part(arrays) for arrays in sets]
        labels = labels if labels is None else part({LABELS: labels})[LABELS]
        batch = batch // request.rank.count if request.rank is not None else batch
    work = Workload(
        spec,
        request.workload,
        batch,
        request.mode,
        request.precision,
        weights,
        _padded({name: sets[0][name] for name in names}, request),
        sets[0].get(LABELS) if batches_have_labels else labels,  # in training each batch has its own
        request.training,
        tuple(map(Path, request.calibration)),
        request.free_sizes,
        request.padded,
    )
    return work, sets


def part_of_rank(request: Prepare) -> Callable[[Arrays], Arrays] | None:
    """Its own part of inputs or labels that are of all ranks together; None for a worker that is no rank."""
    rank = request.rank
    if rank is None:
        return None
    number, count = rank.number, rank.count
    return lambda arrays: {name: in_memory(array) for name, array in parts_of(arrays, number, count).items()}


def _for_batch(arrays: Arrays, spec: Spec, batch: int) -> dict[str, Any]:
    """Repeat the items, of which a search for the largest batch hands out few."""
    shapes = {tensor.name: tensor.shape for tensor in spec.inputs}
    if (labels := spec.label_tensor()) is not None:
        shapes |= {LABELS: labels.shape, BATCH_LABELS: labels.shape}
    return {name: repeated_items(array, shapes.get(name, ()), batch) for name, array in arrays.items()}


def _padded(inputs: Arrays, request: Prepare) -> Arrays:
    """As the model gets them, for which it is prepared."""
    if not request.padded:
        return inputs
    from fairlap.worker.padded_calls import grown, size_of

    found = grown(inputs, size_of(request.padded, inputs).inputs)
    return {name: in_memory(array) for name, array in found.items()}
