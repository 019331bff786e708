"""A small classifier of photos as a user has it: an ONNX file, a folder of JPEGs, and the code around the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

SIZE, CLASSES, CHANNELS = 96, 10, 24
NAME = "photo_code"
CODE = """
import time

import numpy as np


def decode(path):
    from PIL import Image

    with Image.open(path) as photo:
        return photo.convert("RGB")


def resize(photo):
    from PIL import Image

    return photo.resize((96, 96), Image.Resampling.BILINEAR)


def scale(photo):
    return np.ascontiguousarray(np.asarray(photo, np.float32).transpose(2, 0, 1)[None] / 255)


def load(path):
    return np.load(path)


def best(outputs):
    return int(outputs["scores"].argmax())


def three_best(outputs):
    scores = outputs["scores"][0]
    return [(f"class {each}", float(scores[each])) for each in np.argsort(-scores)[:3]]


def pausing(array):
    time.sleep(0.004)
    return array


def pausing_again(outputs):
    time.sleep(0.004)
    return best(outputs)


def noisy(array):
    return array + np.random.default_rng().normal(0, 0.01, array.shape).astype(np.float32)


def counting(array, seen=[]):
    seen.append(1)
    return array + np.float32(len(seen))


def too_small(array):
    return array[..., :-1]


def in_float64(array):
    return array.astype(np.float64)


def by_another_name(array):
    return {"photo": array}


def last_digits(outputs):
    return [int(1e9 * float(score)) for score in outputs["scores"][0]]


def raising(outputs):
    raise ValueError("no class is likely")


def drawn(outputs):
    return float(np.random.default_rng().random())


def scores_of(outputs):
    return outputs["scores"][0]


def doubled(outputs):
    return 2 * outputs["scores"][0]


def halving(outputs):
    outputs["scores"] *= 0.5
    return best(outputs)


def sorting(scores):
    scores.sort()
    return float(scores[-1])


def otherwise_in_a_contestant(array):
    import sys

    return array * np.float32(1.01) if "fairlap.worker.service" in sys.modules else array


def worse_in_a_contestant(outputs):
    import sys

    return best(outputs) + ("fairlap.worker.service" in sys.modules)
"""


def weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(11)

    def drawn(*shape: int) -> np.ndarray:
        found: np.ndarray = (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        return found

    return {
        "first": drawn(CHANNELS, 3, 5, 5),
        "second": drawn(CHANNELS, CHANNELS, 3, 3),
        "out": drawn(CHANNELS, CLASSES),
    }


def onnx_file(path: Path, size: int = SIZE) -> Path:
    """``image`` of ``batch``, three colours, and this size; ``scores`` of each class."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes: list[Any] = [
        helper.make_node("Conv", ["image", "first"], ["edges"], strides=[2, 2], pads=[2, 2, 2, 2]),
        helper.make_node("Relu", ["edges"], ["some"]),
        helper.make_node("Conv", ["some", "second"], ["parts"], strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["parts"], ["found"]),
        helper.make_node("GlobalAveragePool", ["found"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["features"]),
        helper.make_node("MatMul", ["features", "out"], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes,
        "photo classifier",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, size, size])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", CLASSES])],
        [numpy_helper.from_array(array, name) for name, array in weights().items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    onnx.checker.check_model(model)
    onnx.save_model(model, path)
    return path


def arrays(folder: Path, count: int, size: int = SIZE) -> Path:
    """``.npy`` files that need no decoder."""
    folder.mkdir()
    rng = np.random.default_rng(5)
    for number in range(count):
        np.save(folder / f"{number}.npy", rng.random((1, 3, size, size), np.float32))
    return folder


def photos(folder: Path, count: int) -> Path:
    """JPEGs of 400 by 300 pixels, with shapes of many sizes as photos have them."""
    from PIL import Image

    folder.mkdir()
    rng = np.random.default_rng(6)
    for number in range(count):
        coarse = Image.fromarray(rng.integers(0, 256, (6, 8, 3), np.uint8)).resize((400, 300), Image.Resampling.BICUBIC)
        grain = rng.integers(-12, 13, (300, 400, 3))
        whole = np.clip(np.asarray(coarse, np.int64) + grain, 0, 255).astype(np.uint8)
        Image.fromarray(whole).save(folder / f"{number:02}.jpg", quality=88)
    return folder


def code(folder: Path) -> None:
    (folder / f"{NAME}.py").write_text(CODE)
