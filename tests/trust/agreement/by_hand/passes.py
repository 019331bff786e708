"""Passes over data on disk as a user of each library writes them: prints the times of passes in nanoseconds as JSON.

``passes.py PIPELINE PATH SIZE BATCH PASSES``; a folder of images, a WebDataset tar, or a folder of rows.
"""

import json
import sys
import tarfile
import time
from pathlib import Path

import numpy as np

PIPELINE, PATH, SIZE, BATCH, PASSES = sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:6])
IS_TAR, IS_ROWS = PATH.suffix == ".tar", (PATH / "labels.npy").exists()


def listed():
    classes = sorted(PATH.iterdir())
    return [(str(file), number) for number, each in enumerate(classes) for file in sorted(each.iterdir())]


def pixels(file):
    from PIL import Image

    with Image.open(file) as image:
        return np.asarray(image.convert("RGB").resize((SIZE, SIZE), Image.Resampling.BILINEAR))


def tar_members():
    with tarfile.open(PATH) as archive:
        image = None
        for member in archive:
            if member.name.endswith(".jpg"):
                image = archive.extractfile(member)
            else:
                yield image, int(archive.extractfile(member).read())


def loop():
    if IS_ROWS:
        rows, labels = np.load(PATH / "features.npy", mmap_mode="r"), np.load(PATH / "labels.npy")
        order = np.random.default_rng().permutation(len(rows))
        for first in range(0, len(rows), BATCH):
            yield rows[order[first : first + BATCH]], labels[order[first : first + BATCH]]
        return
    if IS_TAR:
        samples = tar_members()
    else:
        files = listed()
        samples = (files[number] for number in np.random.default_rng().permutation(len(files)))
    batch = []
    for file, label in samples:
        batch.append((pixels(file), label))
        if len(batch) == BATCH:
            yield np.stack([image for image, _ in batch]), np.array([label for _, label in batch])
            batch = []
    if batch:
        yield np.stack([image for image, _ in batch]), np.array([label for _, label in batch])


def dataloader():
    import torch
    from torch.utils.data import DataLoader, IterableDataset

    torch.set_num_threads(1)

    class Files:
        def __init__(self):
            self.files = listed()

        def __len__(self):
            return len(self.files)

        def __getitem__(self, number):
            file, label = self.files[number]
            return torch.from_numpy(pixels(file).copy()), label

    class Rows:
        def __init__(self):
            self.rows, self.labels = np.load(PATH / "features.npy", mmap_mode="r"), np.load(PATH / "labels.npy")

        def __len__(self):
            return len(self.labels)

        def __getitem__(self, number):
            return torch.from_numpy(np.array(self.rows[number])), int(self.labels[number])

    class Tar(IterableDataset):
        def __iter__(self):
            for image, label in tar_members():
                yield torch.from_numpy(pixels(image).copy()), label

    data = Rows() if IS_ROWS else Tar() if IS_TAR else Files()
    yield from DataLoader(data, BATCH, shuffle=None if IS_TAR else True)


def tfdata():
    import tensorflow as tf

    def decode(content, label):
        image = tf.image.resize(tf.io.decode_jpeg(content, channels=3), (SIZE, SIZE), antialias=True)
        return tf.cast(tf.round(image), tf.uint8), label

    if IS_ROWS:
        arrays = np.load(PATH / "features.npy"), np.load(PATH / "labels.npy")
        data = tf.data.Dataset.from_tensor_slices(arrays).shuffle(len(arrays[0]))
    elif IS_TAR:
        signature = tf.TensorSpec((), tf.string), tf.TensorSpec((), tf.int64)
        data = tf.data.Dataset.from_generator(
            lambda: ((image.read(), label) for image, label in tar_members()), output_signature=signature
        )
        data = data.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
    else:
        files, labels = zip(*listed(), strict=True)
        data = tf.data.Dataset.from_tensor_slices((list(files), list(labels))).shuffle(len(files))
        data = data.map(lambda file, label: decode(tf.io.read_file(file), label), num_parallel_calls=tf.data.AUTOTUNE)
    yield from data.batch(BATCH).prefetch(tf.data.AUTOTUNE)


def timed():
    began_ns, count = time.perf_counter_ns(), 0
    for items, _ in globals()[PIPELINE]():
        count += len(items)
    return time.perf_counter_ns() - began_ns, count


timed()
found = [timed() for _ in range(PASSES)]
print(json.dumps({"ns": [taken for taken, _ in found], "items": found[0][1]}))
