"""A loop by hand from photo to class in plain PIL and ONNX Runtime, without fairlap: ``MODEL FOLDER``.

Prints the median time of each photo averaged over them, of all and of each stage, the quick ones, and the classes.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image

ROUNDS = 40


def main() -> None:
    model, folder = sys.argv[1:]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    files = sorted(Path(folder).iterdir())
    rows: dict[str, list[list[int]]] = {file.name: [] for file in files}
    classes: dict[str, int] = {}
    for number in range(ROUNDS + 2):
        for file in files:
            began = time.perf_counter_ns()
            with Image.open(file) as photo:
                image = photo.convert("RGB")
            decoded = time.perf_counter_ns()
            image = image.resize((96, 96), Image.Resampling.BILINEAR)
            resized = time.perf_counter_ns()
            array = np.ascontiguousarray(np.asarray(image, np.float32).transpose(2, 0, 1)[None] / 255)
            scaled = time.perf_counter_ns()
            [scores] = session.run(None, {"image": array})
            answered = time.perf_counter_ns()
            classes[file.name] = int(scores.argmax())
            ended = time.perf_counter_ns()
            if number >= 2:
                stamps = np.diff([began, decoded, resized, scaled, answered, ended])
                rows[file.name].append([ended - began, *stamps.tolist()])
    medians = np.mean([np.median(own, axis=0) for own in rows.values()], axis=0)
    quick = np.mean([np.quantile(own, 0.1, axis=0) for own in rows.values()], axis=0)
    names = ("all", "decode", "resize", "scale", "model", "best")
    found = {
        "median_ns": dict(zip(names, medians.tolist(), strict=True)),
        "quick_ns": dict(zip(names, quick.tolist(), strict=True)),
        "classes": classes,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
