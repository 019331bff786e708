"""The data of a metric as files of a bundle: labels that fit the outputs, groups, and every batch of the inputs.

One batch at a time is in memory, and of labels in a .npy file only those that are looked at.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from fairlap.errors import FairlapError
from fairlap.models.array_files import safetensors
from fairlap.models.array_files.npy_map import release
from fairlap.models.metrics.metric import Array, Output
from fairlap.models.published_data.text_tokens import is_text
from fairlap.models.slices.corruptible import MISTYPED, CorruptibleInput, corruptible_input
from fairlap.models.sources.bundle import GROUPS, data_file, labels_file, mistyped_file
from fairlap.models.sources.contract import Opened, SourceError
from fairlap.models.sources.given_data.labels import groups_in, labels_in
from fairlap.models.sources.given_data.reading import mistyped_inputs
from fairlap.models.sources.given_data.sets import Sets
from fairlap.models.sources.inputs import batches_of, of_tensors
from fairlap.models.sources.proof import Outputs
from fairlap.models.spec import LABELS
from fairlap.models.task_metrics import require_labels
from fairlap.request.fields.source import Source

_TYPES = ("int32", "int64", "float32", "float64")


class MetricData(NamedTuple):
    """What is known of them besides their files."""

    groups: tuple[str, ...] = ()  # their names
    corruptible: CorruptibleInput | None = None


def write_data(source: Source, found: Opened, batches: Sets, items: int, exact: Outputs, folder: Path) -> MetricData:
    labels = labels_in(source.labels, source.metrics, source)
    outputs = [Output(name, exact[name].shape, found.output_types[name]) for name in found.outputs]
    try:
        for text in source.metrics:
            require_labels(text, labels, items, outputs)
    except FairlapError as misfit:
        whose = f"{source.shown}: " if source.among_others else ""
        raise SourceError(f"{whose}{misfit}", code=misfit.code) from None
    groups, names = groups_in(source.groups, items) if source.groups else (None, ())
    safetensors.write(labels_file(folder), {LABELS: _typed(labels), **({} if groups is None else {GROUPS: groups})})
    release(labels)
    for number, batch in enumerate(batches):
        safetensors.write(data_file(folder, number), of_tensors(batch, found.inputs))
    return MetricData(names, _corruptible(source, found, batches, folder))


def _corruptible(source: Source, found: Opened, batches: Sets, folder: Path) -> CorruptibleInput | None:
    """Find the input that is corrupted during the race; texts are mistyped now, while they are texts."""
    if not source.corruptions:
        return None
    ranges = {name: (float(low), float(high)) for name, low, high in source.ranges}
    corruptible = corruptible_input(found.inputs, batches, ranges, source.corruptions)
    if not is_text(Path(source.inputs)):
        return corruptible
    for typos in source.corruptions:
        mistyped, _ = batches_of(found.inputs, mistyped_inputs(source, typos), found.batch_axes)
        for number, batch in enumerate(mistyped):
            safetensors.write(mistyped_file(folder, typos.severity, number), of_tensors(batch, found.inputs))
    return MISTYPED


def _typed(labels: Array) -> Array:
    """In a type of few, without a copy where they have one."""
    if str(labels.dtype) in _TYPES:
        return labels
    return labels.astype(np.float64 if labels.dtype.kind == "f" else np.int64)
