"""Import ONNX models into NumPy, PyTorch, JAX and TensorFlow."""

from __future__ import annotations

from fairlap.models.onnx_import.build import ImportedModel, build
from fairlap.models.onnx_import.files.load import load_graph
from fairlap.models.onnx_import.graph import Graph, Node, Tensor

__all__ = ["Graph", "ImportedModel", "Node", "Tensor", "build", "load_graph"]
