"""ONNX graphs in eight bits: by ONNX Runtime's own static quantization, and in fp8 by fairlap."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairlap.frameworks.adapter_parts.quantized.quantized_files import QuantizedFile, quantized_file
from fairlap.frameworks.contract import Unsupported
from fairlap.models.arrays import Arrays
from fairlap.models.fp8_graphs.quantized_graph import NotInFp8, in_fp8
from fairlap.models.workload import Workload

_TOOL = "onnxruntime.quantization"
_IN_INTEGERS = ("QLinear", "QGemm", "QAttention", "MatMulInteger", "ConvInteger", "DynamicQuantize")
_WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "MatMul")
_EXPLICIT = {
    "op_types_to_quantize": list(_WEIGHTED),
    "extra_options": {
        "ActivationSymmetric": True,
        "WeightSymmetric": True,
        "AddQDQPairToWeight": True,
        "QuantizeBias": False,
        "DedicatedQDQPair": True,  # one for each reader, which TensorRT fuses with it
        "OpTypesToExcludeOutputQuantization": list(_WEIGHTED),
        "QDQOpTypePerChannelSupportToAxis": {"MatMul": 1},
    },
}
_PRODUCTS = ("Conv", "FusedConv", "MatMul", "FusedMatMul", "Gemm", "FusedGemm")


def quantized(work: Workload, graph: bytes | str, version: str) -> QuantizedFile:
    """Weights by channel in int8 and activations in uint8: what its kernels for x86 are fastest in."""
    return quantized_file(work, _TOOL, version, "model.onnx", lambda file: _write(work, graph, file, "QUInt8", {}))


def quantized_for_gpu(work: Workload, graph: bytes | str, version: str) -> QuantizedFile:
    """Quantize what products read, all in int8 and symmetric, with weights and biases kept in float.

    TensorRT takes no zero points and no integer biases, and quantizes constant weights itself.
    """
    tool = f"{_TOOL} for TensorRT"
    return quantized_file(work, tool, version, "model.onnx", lambda file: _write(work, graph, file, "QInt8", _EXPLICIT))


def quantized_to_fp8(work: Workload, graph: bytes | str, version: str) -> QuantizedFile:
    """Quantize what products read to fp8, with ranges that ONNX Runtime computes."""
    import onnx

    def write(file: Path) -> None:
        with _prepared(graph) as prepared:
            onnx.save(in_fp8(onnx.load(prepared), work.calibration_sets()).model, file)

    try:
        return quantized_file(work, "fairlap", version, "model.onnx", write)
    except NotInFp8 as error:
        raise Unsupported(str(error)) from None


def quantized_products_in(graph: Path) -> tuple[int, int]:
    """How many products of a graph read nothing but what was quantized, and how many others there are.

    A bias is in float. Where the graph is only the request, the runtime decides which of them are integer products.
    """
    import onnx

    nodes = onnx.load_model(graph, load_external_data=False).graph.node
    dequantized = {node.output[0] for node in nodes if node.op_type == "DequantizeLinear"}
    products = [node for node in nodes if node.op_type in _PRODUCTS]
    quantized_ones = sum(set(node.input[:2]) <= dequantized for node in products)
    return quantized_ones, len(products) - quantized_ones


def _write(work: Workload, graph: bytes | str, file: Path, activations: str, settings: Mapping[str, Any]) -> None:
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.calibrate import CalibrationDataReader

    class Sets(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._sets: Iterator[Arrays] = work.calibration_sets()

        def get_next(self) -> dict[str, Any] | None:
            own = next(self._sets, None)
            return None if own is None else dict(own)

    with _prepared(graph) as prepared:
        quantize_static(
            prepared,
            file,
            Sets(),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            activation_type=getattr(QuantType, activations),
            weight_type=QuantType.QInt8,
            **settings,
        )


@contextmanager
def _prepared(graph: bytes | str) -> Iterator[Path]:
    """Fold constants and normalisations, as quantizing starts from."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    logging.getLogger().setLevel(logging.ERROR)  # it advises on the graph on every run
    with tempfile.TemporaryDirectory() as scratch:
        given, prepared = Path(scratch) / "given.onnx", Path(scratch) / "prepared.onnx"
        if isinstance(graph, bytes):
            given.write_bytes(graph)
        quant_pre_process(given if isinstance(graph, bytes) else graph, prepared, skip_symbolic_shape=True)
        yield prepared


def operations_in(graph: Path) -> tuple[int, int]:
    """How many products a graph that ONNX Runtime optimized computes in integers, and in float."""
    import onnx

    kinds = [node.op_type for node in onnx.load_model(graph, load_external_data=False).graph.node]
    return sum(kind.startswith(_IN_INTEGERS) for kind in kinds), sum(kind in _PRODUCTS for kind in kinds)
