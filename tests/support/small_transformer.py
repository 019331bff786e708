"""A transformer of a user's with open sizes: as an ONNX file, and written by hand in PyTorch and JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

HIDDEN, HEADS, LAYERS, WORDS = 128, 4, 2, 500


def weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)

    def drawn(*shape: int) -> np.ndarray:
        found: np.ndarray = (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)
        return found

    found = {"words": drawn(WORDS, HIDDEN)}
    for layer in range(LAYERS):
        found |= {f"{layer}.{name}": drawn(HIDDEN, HIDDEN) for name in ("query", "key", "value", "out")}
        found |= {f"{layer}.up": drawn(HIDDEN, 4 * HIDDEN), f"{layer}.down": drawn(4 * HIDDEN, HIDDEN)}
        found |= {f"{layer}.scale": np.ones(HIDDEN, np.float32), f"{layer}.shift": np.zeros(HIDDEN, np.float32)}
    return found


def onnx_file(path: Path) -> Path:
    """``ids`` of ``batch`` and ``sequence``, and the hidden states of the last layer."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes: list[Any] = []

    def node(kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    state = node("Gather", ["words", "ids"], "looked up")
    for layer in range(LAYERS):
        at = f"{layer}/"
        parts = {}
        for name in ("query", "key", "value"):
            product = node("MatMul", [state, f"{layer}.{name}"], f"{at}{name}")
            parts[name] = node("Reshape", [product, "by heads"], f"{at}{name} by heads")
        query = node("Transpose", [parts["query"]], f"{at}q", perm=[0, 2, 1, 3])
        key = node("Transpose", [parts["key"]], f"{at}k", perm=[0, 2, 3, 1])
        value = node("Transpose", [parts["value"]], f"{at}v", perm=[0, 2, 1, 3])
        scores = node("Mul", [node("MatMul", [query, key], f"{at}scores"), "root"], f"{at}scaled")
        seen = node("MatMul", [node("Softmax", [scores], f"{at}shares", axis=-1), value], f"{at}seen")
        joined = node("Reshape", [node("Transpose", [seen], f"{at}back", perm=[0, 2, 1, 3]), "joined"], f"{at}joined")
        state = node("Add", [state, node("MatMul", [joined, f"{layer}.out"], f"{at}out")], f"{at}attended")
        normal = node(
            "LayerNormalization", [state, f"{layer}.scale", f"{layer}.shift"], f"{at}normal", axis=-1, epsilon=1e-5
        )
        up = node("Relu", [node("MatMul", [normal, f"{layer}.up"], f"{at}up")], f"{at}active")
        state = node("Add", [state, node("MatMul", [up, f"{layer}.down"], f"{at}down")], f"{at}state")
    node("Identity", [state], "hidden")
    constants = {
        "by heads": np.array([0, 0, HEADS, HIDDEN // HEADS]),
        "joined": np.array([0, 0, HIDDEN]),
        "root": np.array((HIDDEN / HEADS) ** -0.5, np.float32),
    }
    graph = helper.make_graph(
        nodes,
        "transformer",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "sequence"])],
        [helper.make_tensor_value_info("hidden", TensorProto.FLOAT, ["batch", "sequence", HIDDEN])],
        [numpy_helper.from_array(array, name) for name, array in {**weights(), **constants}.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    onnx.checker.check_model(model)
    onnx.save_model(model, path)
    return path


def by_hand(library: Any, held: Mapping[str, Any], ids: Any) -> Any:
    """Compute the same as somebody would write it, in NumPy or jax.numpy."""
    state = held["words"][ids]
    batch, length = ids.shape
    for layer in range(LAYERS):
        query, key, value = (
            (state @ held[f"{layer}.{name}"]).reshape(batch, length, HEADS, -1).transpose(0, 2, 1, 3)
            for name in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) * (HIDDEN / HEADS) ** -0.5
        shares = library.exp(scores - scores.max(-1, keepdims=True))
        shares = shares / shares.sum(-1, keepdims=True)
        joined = (shares @ value).transpose(0, 2, 1, 3).reshape(batch, length, HIDDEN)
        state = state + joined @ held[f"{layer}.out"]
        apart = state - state.mean(-1, keepdims=True)
        normal = apart / library.sqrt((apart**2).mean(-1, keepdims=True) + 1e-5)
        normal = normal * held[f"{layer}.scale"] + held[f"{layer}.shift"]
        state = state + library.maximum(normal @ held[f"{layer}.up"], 0) @ held[f"{layer}.down"]
    return state
