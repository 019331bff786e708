"""Arrays as TensorFlow takes them: in the work's precision, or lent by a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlap.models.arrays import Arrays
from fairlap.models.spec import LABELS
from fairlap.models.workload import Workload
from fairlap.request.work import Precision

TYPES: Mapping[Precision, str] = {"fp16": "float16", "bf16": "bfloat16"}


def tensors_of(work: Workload, arrays: Arrays) -> dict[str, Any]:
    import tensorflow as tf

    tensors = {name: tf.convert_to_tensor(array) for name, array in arrays.items()}
    if work.precision in TYPES:
        kind = getattr(tf, TYPES[work.precision])
        return {
            name: tf.cast(each, kind) if each.dtype.is_floating and name != LABELS else each
            for name, each in tensors.items()
        }
    return tensors


def lent_tensor(batch: Any) -> Any:
    import tensorflow as tf

    return tf.experimental.dlpack.from_dlpack(batch.__dlpack__())
