"""The right answers to a user's data, for metrics: an array, or a COCO annotation file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fairlap.machine.files.regular_file import require_regular
from fairlap.models.array_files.npy_map import mapped
from fairlap.models.array_files.numpy_files import why_not_read
from fairlap.models.metrics.boxes import labels_of_annotations
from fairlap.models.metrics.metric import CODE, Array
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.inputs import why_unreadable
from fairlap.models.task_metrics import metric_named


def labels_in(path: Path, metrics: Sequence[str]) -> Array:
    """With one row for each item."""
    coco = [text for text in metrics if metric_named(text).reads_coco]
    if others := [text for text in metrics if coco and text not in coco]:
        raise SourceError(
            f"{coco[0]} takes --labels as a COCO annotation file, and {others[0]} takes an array; ask for one of them",
            code=CODE,
        )
    try:
        require_regular(path)
        if not coco and (why := why_not_read(path, mapped=True)):
            raise SourceError(f"{path} cannot be read as labels: {why}", code="E_SOURCE_SIZE")
        labels = labels_of_annotations(path.read_bytes()) if coco else mapped(path)
    except SourceError:
        raise
    except Exception as error:  # NumPy and msgspec raise several types
        raise SourceError(f"{path} cannot be read as labels: {why_unreadable(error)}", code=CODE) from None
    if not isinstance(labels, np.ndarray) or not labels.ndim:
        raise SourceError(f"{path} is not one array of labels, a .npy file", code=CODE)
    return labels
