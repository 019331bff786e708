"""tf.data, as its guide shows: read, decoded and resized in its own threads, batched and prefetched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from fairlap.frameworks.contract import Settings
from fairlap.frameworks.pipelines.input_pipeline import (
    PREFETCH,
    WORKERS,
    InputPipeline,
    Opened,
    prefetch_in,
    workers_in,
)
from fairlap.models.sources.stored_items.parquet_rows import parquet_samples
from fairlap.models.sources.stored_items.stored_items import StoredItems
from fairlap.models.sources.stored_items.tar_samples import tar_samples

_CHANNELS = 3
_BRIGHTEST = 255.0


class TfData(InputPipeline):
    name = "tfdata"
    packages = ("tensorflow==2.21.0", "pillow==13.0.0", "pyarrow==26.0.1")
    module = "tensorflow"
    tunable: ClassVar = {WORKERS: ("1", "2", "4"), PREFETCH: ("1", "4")}
    environment: ClassVar = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}

    def open(self, items: StoredItems, wanted: Settings) -> Opened:
        workers, prefetch = workers_in(wanted.options, least=1), prefetch_in(wanted.options)
        import tensorflow as tf

        self._version = str(tf.__version__)
        tf.config.threading.set_intra_op_parallelism_threads(wanted.threads)
        calls = tf.data.AUTOTUNE if workers is None else workers

        def batches(seed: int) -> Iterator[tuple[Any, Any]]:
            tf.random.set_seed(seed)
            data = _dataset(tf, items, seed)
            if items.has_pixels:
                data = data.map(_decoder(tf, items), num_parallel_calls=calls)
            data = data.batch(items.batch).prefetch(tf.data.AUTOTUNE if prefetch is None else prefetch)
            return iter(data)

        in_force = {WORKERS: "autotuned" if workers is None else str(workers)}
        in_force[PREFETCH] = "autotuned" if prefetch is None else str(prefetch)
        return Opened(batches, array=_viewed, in_force=in_force)


def _dataset(tf: Any, items: StoredItems, seed: int) -> Any:
    if items.stored_as == "rows":
        rows, labels = np.load(items.files[0]), np.load(items.files[1]).astype(np.int64)
        return tf.data.Dataset.from_tensor_slices((rows, labels)).shuffle(items.items, seed=seed)
    if items.stored_as == "images":
        data = tf.data.Dataset.from_tensor_slices((list(items.files), np.array(items.labels, np.int64)))
        return data.shuffle(items.items, seed=seed)
    [path] = items.files

    def samples() -> Iterator[tuple[bytes, int]]:
        return tar_samples(path) if items.stored_as == "tar" else parquet_samples(path, items.columns, items.batch)

    signature = tf.TensorSpec((), tf.string), tf.TensorSpec((), tf.int64)
    return tf.data.Dataset.from_generator(samples, output_signature=signature)


def _decoder(tf: Any, items: StoredItems) -> Any:
    is_path = items.stored_as == "images"

    def decode(encoded: Any, label: Any) -> tuple[Any, Any]:
        content = tf.io.read_file(encoded) if is_path else encoded
        image = tf.io.decode_jpeg(content, channels=_CHANNELS)  # which decodes PNG too
        image = tf.image.resize(image, items.height_and_width, antialias=True)
        if items.dtype == "uint8":
            return tf.cast(tf.round(image), tf.uint8), label
        return image / _BRIGHTEST, label

    return decode


def _viewed(tensor: Any) -> np.ndarray:
    """``numpy()`` would copy it."""
    return np.asarray(memoryview(tensor))
