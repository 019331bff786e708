"""OpenVINO models quantized by NNCF, and what of them a compiled model computes in 8 bits."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from fairlap.frameworks.adapter_parts.quantized.quantized_files import QuantizedFile, quantized_file
from fairlap.frameworks.contract import Unsupported
from fairlap.models.workload import Workload

_PRODUCTS = ("Convolution", "FullyConnected", "MatMul", "Deconvolution")


def quantized(work: Workload, model: Any) -> QuantizedFile:
    try:
        import nncf
    except ModuleNotFoundError:
        raise Unsupported("openvino is quantized by the package nncf; install it") from None

    def write(file: Path) -> None:
        import openvino

        nncf.set_log_level(logging.ERROR)
        sets = [dict(own) for own in work.calibration_sets()]
        openvino.save_model(nncf.quantize(model, nncf.Dataset(sets), subset_size=len(sets)), file)

    return quantized_file(work, "NNCF", str(nncf.__version__), "model.xml", write)


def products_in(compiled: Any) -> tuple[int, int]:
    """How many products it computes in integers, and in floats."""
    kinds = []
    for node in compiled.get_runtime_model().get_ops():
        about = node.get_rt_info()
        if str(about["layerType"].value if hasattr(about["layerType"], "value") else about["layerType"]) in _PRODUCTS:
            held = about["runtimePrecision"]
            kinds.append(str(held.value if hasattr(held, "value") else held))
    integers = sum(kind in ("i8", "u8") for kind in kinds)
    return integers, len(kinds) - integers
