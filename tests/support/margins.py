"""How far answers are from the reference, as a multiple of what is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from fairlap.race.equal_work.materials import Materials


def share_of_tolerance(materials: Materials, got: Mapping[str, Any], which: str = "inputs") -> float:
    """Of the element that is furthest off; an answer with more than 1 is wrong."""
    worst = 0.0
    for name, exact in materials.reference(which).items():
        tolerance = materials.tolerance(name)
        off = np.abs(np.asarray(got[name], np.float64) - exact)
        allowed = np.maximum(tolerance.absolute, tolerance.relative * np.abs(exact))
        worst = max(worst, float((off / allowed).max()) if np.isfinite(off).all() else float("inf"))
    return worst


def by_onnxruntime(model: Any, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 2, 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(None, dict(inputs)), strict=True))


def by_openvino(model: Any, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    import openvino

    core = openvino.Core()
    compiled = core.compile_model(
        core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    asked = {name for port in compiled.inputs for name in port.get_names()}  # unused inputs are dropped
    found = compiled({name: array for name, array in inputs.items() if name in asked})
    return {name: np.array(found[port]) for port in compiled.outputs for name in port.get_names()}


def by_torch(model: Any, inputs: Mapping[str, np.ndarray], folder: Path) -> dict[str, np.ndarray]:
    """Through fairlap's importer, with the weights of the file."""
    import torch
    from fairlap.models.onnx_import import build, load_graph

    file = folder / "converted.onnx"
    file.write_bytes(model.SerializeToString())
    graph = load_graph(file)
    imported = build(graph, "torch")
    with torch.inference_mode():
        given = {name: torch.from_numpy(np.array(array)) for name, array in inputs.items()}
        found = imported(imported.prepare(graph.weights), given)
    return {name: tensor.numpy() for name, tensor in found.items()}
