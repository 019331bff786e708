"""The work that a request names: the files of weights and inputs that the parent wrote, as a workload."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlap.models import safetensors
from fairlap.models.arrays import repeated_items
from fairlap.models.registry import spec_at, spec_with
from fairlap.models.spec import BATCH_LABELS, LABELS
from fairlap.models.workload import Workload

if TYPE_CHECKING:
    from fairlap.models.arrays import Arrays
    from fairlap.models.spec import Spec
    from fairlap.worker.protocol import Prepare


def workload_of(request: Prepare) -> tuple[Workload, list[Arrays]]:
    """And its two sets of inputs: the first one, which the workload holds too, and the changed one."""
    if request.free_sizes:
        spec = spec_with(request.workload, request.free_sizes)
    else:
        spec = spec_at(request.workload, request.sizes)
    weights = safetensors.read(Path(request.weights))
    names = [tensor.name for tensor in spec.inputs]
    sets: list[Arrays] = []
    for file in (request.inputs, request.changed):
        arrays = _for_batch(safetensors.read(Path(file)), spec, request.batch)
        of_set = {name: arrays[name] for name in names}
        if request.mode == "train" and request.labels is not None:
            of_set[LABELS] = arrays[BATCH_LABELS]
        sets.append(of_set)
    labels = None
    if request.mode == "train":  # each batch has its own
        labels = sets[0].get(LABELS)
    elif request.labels is not None:
        labels = _for_batch(safetensors.read(Path(request.labels)), spec, request.batch)[LABELS]
    work = Workload(
        spec,
        request.workload,
        request.batch,
        request.mode,
        request.precision,
        weights,
        {name: sets[0][name] for name in names},
        labels,
        request.training,
        tuple(map(Path, request.calibration)),
        request.free_sizes,
    )
    return work, sets


def _for_batch(arrays: Arrays, spec: Spec, batch: int) -> dict[str, Any]:
    """A search for the largest batch hands out few items, which are repeated."""
    shapes = {tensor.name: tensor.shape for tensor in spec.inputs}
    if (labels := spec.label_tensor()) is not None:
        shapes |= {LABELS: labels.shape, BATCH_LABELS: labels.shape}
    return {name: repeated_items(array, shapes.get(name, ()), batch) for name, array in arrays.items()}
