"""One small network, its answers by hand in float64, and its files as the frameworks' own exporters write them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from onnx_files import drawn

SIZE, CHANNELS, CLASSES = 8, 4, 5
BATCH = 2

Change = Literal["", "weight", "swapped", "no softmax", "one output"]


def weights(change: Change = "") -> dict[str, np.ndarray]:
    """Of a convolution in the layout (out, in, height, width), and of two linear layers, (out, in)."""
    found = {
        "kernel": drawn(CHANNELS, 3, 3, 3),
        "scores": drawn(CLASSES, CHANNELS),
        "boxes": drawn(CLASSES, CHANNELS, seed=1),
    }
    if change == "weight":
        found["kernel"][1, 2, 0, 1] += 0.25
    return found


def answers_by_hand(image: np.ndarray, own: Mapping[str, np.ndarray] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Convolve without padding by a step of one, keep what is positive, average, and multiply twice."""
    held = {name: array.astype(np.float64) for name, array in (own or weights()).items()}
    wide = image.astype(np.float64)
    places = SIZE - 2
    hidden = np.zeros((len(image), CHANNELS, places, places))
    for row in range(3):
        for column in range(3):
            seen = wide[:, :, row : row + places, column : column + places]
            hidden += np.einsum("nchw,oc->nohw", seen, held["kernel"][:, :, row, column])
    averaged = np.maximum(hidden, 0).mean((2, 3))
    logits = averaged @ held["scores"].T
    exponents = np.exp(logits - logits.max(1, keepdims=True))
    return exponents / exponents.sum(1, keepdims=True), averaged @ held["boxes"].T


def torch_net(stem: Path, change: Change = "") -> None:
    """Write ``.onnx``, ``.pt2``, ``.jit`` and ``.xml``."""
    import openvino
    import torch

    held = {name: torch.from_numpy(array) for name, array in weights(change).items()}

    class Net(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.convolution = torch.nn.Conv2d(3, CHANNELS, 3, bias=False)
            self.scores = torch.nn.Linear(CHANNELS, CLASSES, bias=False)
            self.boxes = torch.nn.Linear(CHANNELS, CLASSES, bias=False)
            self.convolution.weight.data = held["kernel"]
            self.scores.weight.data, self.boxes.weight.data = held["scores"], held["boxes"]

        def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
            averaged = torch.relu(self.convolution(image)).mean((2, 3))
            scores, boxes = torch.softmax(self.scores(averaged), 1), self.boxes(averaged)
            if change == "one output":
                return (scores,)
            return (boxes, scores) if change == "swapped" else (scores, boxes)

    module = Net().eval()
    image = torch.randn(BATCH, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(0))
    program = torch.export.export(module, (image,))
    returned = ["scores"] if change == "one output" else ["scores", "boxes"]
    names = {"input_names": ["image"], "output_names": returned}
    torch.onnx.export(module, (image,), stem.with_suffix(".onnx"), dynamo=True, verbose=False, **names)
    torch.export.save(program, stem.with_suffix(".pt2"))
    torch.jit.save(torch.jit.trace(module, image), stem.with_suffix(".jit"))
    openvino.save_model(openvino.convert_model(program), stem.with_suffix(".xml"), compress_to_fp16=False)


def keras_net(stem: Path, change: Change = "") -> None:
    """Write ``.keras``, a SavedModel and ``.tflite``, with the channels last and the batch open in the first two."""
    import keras
    import tensorflow as tf

    held = weights(change)
    image = keras.Input((SIZE, SIZE, 3), name="image")
    layers: dict[str, Any] = {
        "kernel": keras.layers.Conv2D(CHANNELS, 3, use_bias=False, activation="relu", name="convolution"),
        "scores": keras.layers.Dense(
            CLASSES, use_bias=False, activation=None if change == "no softmax" else "softmax", name="scores"
        ),
        "boxes": keras.layers.Dense(CLASSES, use_bias=False, name="boxes"),
    }
    averaged = keras.layers.GlobalAveragePooling2D()(layers["kernel"](image))
    returned = ("scores",) if change == "one output" else ("scores", "boxes")
    model = keras.Model(image, [layers[name](averaged) for name in returned])
    layers["kernel"].set_weights([held["kernel"].transpose(2, 3, 1, 0)])
    for name in returned:
        layers[name].set_weights([held[name].T])
    model.save(stem.with_suffix(".keras"))
    model.export(stem.with_name(f"{stem.name}_saved"), verbose=False)
    stem.with_suffix(".tflite").write_bytes(tf.lite.TFLiteConverter.from_keras_model(model).convert())
