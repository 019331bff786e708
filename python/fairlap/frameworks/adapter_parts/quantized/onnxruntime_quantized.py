"""ONNX Runtime's own static quantization, and what of it is in the graph that a session runs."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairlap.frameworks.adapter_parts.quantized.quantized_files import QuantizedFile, quantized_file
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload

_TOOL = "onnxruntime.quantization"
_IN_INTEGERS = ("QLinear", "QGemm", "QAttention", "MatMulInteger", "ConvInteger", "DynamicQuantize")
_PRODUCTS = ("Conv", "FusedConv", "MatMul", "FusedMatMul", "Gemm", "FusedGemm")


def quantized(work: Workload, graph: bytes | str, version: str) -> QuantizedFile:
    return quantized_file(work, _TOOL, version, "model.onnx", lambda file: _write(work, graph, file))


def _write(work: Workload, graph: bytes | str, file: Path) -> None:
    """Weights by channel in int8 and activations in uint8: what its kernels for x86 are fastest in."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.calibrate import CalibrationDataReader
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Sets(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._sets: Iterator[Arrays] = work.calibration_sets()

        def get_next(self) -> dict[str, Any] | None:
            own = next(self._sets, None)
            return None if own is None else dict(own)

    logging.getLogger().setLevel(logging.ERROR)  # it advises on the graph on every run
    with tempfile.TemporaryDirectory() as scratch:
        given, prepared = Path(scratch) / "given.onnx", Path(scratch) / "prepared.onnx"
        if isinstance(graph, bytes):
            given.write_bytes(graph)
        quant_pre_process(given if isinstance(graph, bytes) else graph, prepared, skip_symbolic_shape=True)
        quantize_static(
            prepared,
            file,
            Sets(),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )


def operations_in(graph: Path) -> tuple[int, int]:
    """How many products a graph that ONNX Runtime optimized computes in integers, and in float."""
    import onnx

    kinds = [node.op_type for node in onnx.load_model(graph, load_external_data=False).graph.node]
    return sum(kind.startswith(_IN_INTEGERS) for kind in kinds), sum(kind in _PRODUCTS for kind in kinds)
