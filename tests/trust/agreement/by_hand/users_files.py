"""Files as users bring them, from plain ONNX, TensorFlow, ONNX Runtime and Pillow: ``users_files.py FOLDER NAME``."""

import csv
import os
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
from sizes import BATCH, LENGTHS, WIDTH

ITEMS, CLASSES = 160, 10
CHANNELS = {"convolutions": (3, 32, 64, 64), "large": (3, 32, 64, 64), "small": (3, 16, 32, 32)}
STRIDES = (1, 2, 2)


def drawn_weights(channels):
    draw = np.random.default_rng(3)
    convs = [
        (draw.standard_normal((outward, inward, 3, 3)) * (2 / (9 * inward)) ** 0.5, 0.1 * draw.standard_normal(outward))
        for inward, outward in pairwise(channels)
    ]
    head = draw.standard_normal((channels[-1], CLASSES)) * channels[-1] ** -0.5, 0.1 * draw.standard_normal(CLASSES)
    return [(kernel.astype(np.float32), shift.astype(np.float32)) for kernel, shift in (*convs, head)]


def write_graph(file, nodes, inputs, outputs, arrays):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    graph = helper.make_graph(
        nodes,
        file.stem,
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes) for name, sizes in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes) for name, sizes in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), file)


def write_network(file, batch=BATCH):
    from onnx import helper

    *convs, (weight, shift) = drawn_weights(CHANNELS[file.stem])
    arrays, nodes, hidden = {"head": weight, "head shift": shift}, [], "image"
    for number, (stride, (kernel, bias)) in enumerate(zip(STRIDES, convs, strict=True)):
        arrays |= {f"kernel {number}": kernel, f"shift {number}": bias}
        names = [hidden, f"kernel {number}", f"shift {number}"]
        nodes.append(helper.make_node("Conv", names, [f"sum {number}"], strides=[stride, stride], pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [f"sum {number}"], [f"hidden {number}"]))
        hidden = f"hidden {number}"
    nodes.append(helper.make_node("GlobalAveragePool", [hidden], ["pooled"]))
    nodes.append(helper.make_node("Flatten", ["pooled"], ["flat"]))
    nodes.append(helper.make_node("Gemm", ["flat", "head", "head shift"], ["logits"]))
    write_graph(file, nodes, {"image": [batch, 3, 64, 64]}, {"logits": [batch, CLASSES]}, arrays)


def convolutions(folder):
    write_network(folder / "convolutions.onnx")


def exports(folder):
    """Write the same network as TensorFlow's converter writes it, whose images have their channels last."""
    import tensorflow as tf

    convolutions(folder)
    *convs, (weight, shift) = drawn_weights(CHANNELS["convolutions"])

    def network(image):
        hidden = image
        for stride, (kernel, bias) in zip(STRIDES, convs, strict=True):
            padded = tf.pad(hidden, [[0, 0], [1, 1], [1, 1], [0, 0]])
            turned = tf.constant(kernel.transpose(2, 3, 1, 0))
            hidden = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(padded, turned, stride, "VALID"), bias))
        return {"logits": tf.matmul(tf.reduce_mean(hidden, axis=(1, 2)), weight) + shift}

    function = tf.function(network).get_concrete_function(tf.TensorSpec((BATCH, 64, 64, 3), name="image"))
    converted = tf.lite.TFLiteConverter.from_concrete_functions([function], tf.Module()).convert()
    (folder / "convolutions.tflite").write_bytes(converted)


def candidates(folder):
    """Write two networks for any batch, and items: the larger one's best class is right for about seven in ten."""
    import onnxruntime

    for name in ("small", "large"):
        write_network(folder / f"{name}.onnx", "batch")
    draw = np.random.default_rng(4)
    colours = 2 * draw.standard_normal((ITEMS, 3, 1, 1))  # which decide the best class
    items = (colours + draw.standard_normal((ITEMS, 3, 64, 64))).astype(np.float32)
    session = onnxruntime.InferenceSession(folder / "large.onnx", providers=["CPUExecutionProvider"])
    best = [session.run(["logits"], {"image": part})[0].argmax(1) for part in np.split(items, ITEMS // BATCH)]
    others = draw.integers(CLASSES, size=ITEMS)
    np.save(folder / "items.npy", items)
    np.save(folder / "classes.npy", np.where(draw.random(ITEMS) < 0.7, np.concatenate(best), others))


def sequences(folder):
    """Write two residual layers over sequences of any length, and the lengths of calls."""
    from onnx import helper

    draw, nodes, arrays, hidden = np.random.default_rng(5), [], {}, "tokens"
    for layer in range(2):
        for name, shape in (("wide", (WIDTH, 8 * WIDTH)), ("narrow", (8 * WIDTH, WIDTH))):
            arrays[f"{name} {layer}"] = (draw.standard_normal(shape) * shape[0] ** -0.5).astype(np.float32)
        nodes += [
            helper.make_node("MatMul", [hidden, f"wide {layer}"], [f"widened {layer}"]),
            helper.make_node("Relu", [f"widened {layer}"], [f"kept {layer}"]),
            helper.make_node("MatMul", [f"kept {layer}", f"narrow {layer}"], [f"change {layer}"]),
            helper.make_node("Add", [hidden, f"change {layer}"], [f"hidden {layer}"]),
        ]
        hidden = f"hidden {layer}"
    nodes.append(helper.make_node("ReduceMean", [hidden], ["answer"], axes=[1], keepdims=0))
    write_graph(folder / "sequences.onnx", nodes, {"tokens": [1, "sequence", WIDTH]}, {"answer": [1, WIDTH]}, arrays)
    with (folder / "lengths.csv").open("w", newline="") as file:
        rows = [(length,) for length, calls in LENGTHS.items() for _ in range(calls)]
        csv.writer(file).writerows([("sequence",), *rows])


def photos(folder):
    """Write photos of random blocks, which JPEG has as much work with as with others."""
    from PIL import Image

    draw = np.random.default_rng(6)
    (folder / "photos").mkdir(exist_ok=True)
    for number in range(8):
        blocks = draw.integers(256, size=(15, 20, 3), dtype=np.uint8).repeat(16, axis=0).repeat(16, axis=1)
        Image.fromarray(blocks).save(folder / "photos" / f"{number}.jpg", quality=90)


if __name__ == "__main__":
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    globals()[sys.argv[2]](Path(sys.argv[1]))
