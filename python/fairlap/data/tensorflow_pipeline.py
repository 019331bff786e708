"""tf.data, used as its guide shows: slices of arrays, fully shuffled, batched and prefetched."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from fairlap.data.pipeline import NUMBERS, Job, TimedIterator
from fairlap.models.arrays import Arrays


class TfDataPipeline(TimedIterator):
    description = "tf.data"

    def __init__(self, job: Job) -> None:
        arrays = {name: np.load(file) for name, file in job.files.items()}
        if job.numbered:
            arrays[NUMBERS] = np.arange(job.samples, dtype=np.int64)
        data = tf.data.Dataset.from_tensor_slices(arrays)
        data = data.shuffle(job.samples, seed=job.seed).batch(job.batch, drop_remainder=True)
        data = data.repeat(job.epochs).prefetch(tf.data.AUTOTUNE)
        super().__init__(iter(data))

    def arrays(self) -> Arrays:
        return {name: tensor.numpy() for name, tensor in self.held.items()}

    def close(self) -> None:
        self.held, self._batches = {}, iter(())
