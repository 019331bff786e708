"""Keras models exported for the frameworks that Keras has no backend for.

OpenVINO converts the model from Keras on TensorFlow. ONNX is written by PyTorch from Keras on PyTorch, in a process of
its own, since a process has one backend: ``python -m fairlap.models.sources.tensorflow_files.keras_exports`` reads an
``Export`` from standard input. tf2onnx is not used: it leaves operators that do not exist, and ends as if nothing were
wrong.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fairlap.errors import FairlapError, cause_of
from fairlap.models.sources.contract import Route
from fairlap.models.sources.python_models.torch_exports import (
    EXPORTED,
    converted_by_openvino,
    write_onnx,
    write_openvino,
)
from fairlap.models.sources.python_models.torch_source import TorchSource, wrapped
from fairlap.models.sources.tensorflow_files.keras_models import KerasModel, load_keras, use_backend

FILES = {"onnx": "exported.onnx", "openvino": "exported.xml"}
_FROM_TENSORFLOW = "from Keras on TensorFlow by OpenVINO"
_FROM_TORCH = f"from Keras on PyTorch, {EXPORTED}"
_LIMIT_S = 900.0
_CANNOT = 3  # the exit status when the model cannot be exported; the reason is on standard error


class Export(msgspec.Struct, frozen=True):
    model: str
    trust: bool
    file: str
    inputs: dict[str, tuple[tuple[int, ...], str]]  # shapes and types


def exported_to_openvino(model: KerasModel, tensors: Sequence[Any], folder: Path) -> Route:
    """In this process, whose backend is TensorFlow."""
    began_s = time.monotonic()
    try:
        import tensorflow as tf

        def serve(*arguments: Any) -> Any:
            return model(dict(zip([tensor.name for tensor in tensors], arguments, strict=True)))

        signature = [tf.TensorSpec(tensor.sized(1), tensor.dtype) for tensor in tensors]
        program = tf.function(serve, autograph=False, input_signature=signature).get_concrete_function()
        names = [tensor.name for tensor in tensors]
        converted = _with_outputs_of(program, converted_by_openvino(program))
        size = write_openvino(converted, names, model.outputs, folder / FILES["openvino"])
    except ModuleNotFoundError as error:
        return Route(why_not=f"the conversion needs the package {error.name}; install it")
    except Exception as error:  # of OpenVINO and of the model itself
        return Route(why_not=f"OpenVINO cannot convert it: {cause_of(error)}")
    return Route(_FROM_TENSORFLOW, "", time.monotonic() - began_s, size, holds_weights=False)


def _with_outputs_of(program: Any, converted: Any) -> Any:
    """Drop inner tensors that OpenVINO mistakes for outputs: those of custom gradients, such as that of SiLU."""
    import openvino

    results = {name: each for each in converted.get_results() for name in each.output(0).get_names()}
    wanted = [results[tensor.name] for tensor in program.outputs]
    return openvino.Model(wanted, converted.get_parameters(), converted.friendly_name)


def exported_to_onnx(model: Path, tensors: Sequence[Any], folder: Path, *, trust: bool) -> Route:
    file = folder / FILES["onnx"]
    inputs = {tensor.name: (tensor.sized(1), tensor.dtype) for tensor in tensors}
    began_s = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "fairlap.models.sources.tensorflow_files.keras_exports"],
            input=msgspec.json.encode(Export(str(model), trust, str(file), inputs)),
            capture_output=True,
            timeout=_LIMIT_S,
            env={**os.environ, "KERAS_BACKEND": "torch"},
        )
    except subprocess.TimeoutExpired:
        return Route(why_not=f"PyTorch did not export it within {_LIMIT_S / 60:.0f} minutes")
    if done.returncode or not file.is_file():
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit status {done.returncode}"]
        return Route(why_not=lines[-1] if done.returncode == _CANNOT else f"the export ended: {lines[-1]}")
    return Route(_FROM_TORCH, "", time.monotonic() - began_s, file.stat().st_size, holds_weights=False)


def main() -> int:
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Export)
    try:
        _export(order)
    except ModuleNotFoundError as error:
        return _cannot(f"the conversion needs the package {error.name}; install it")
    except FairlapError as error:
        return _cannot(str(error))
    except Exception as error:  # of torch.export, of onnx's checker, and of the model itself
        return _cannot(f"PyTorch cannot export it: {cause_of(error)}")
    return 0


def _export(order: Export) -> None:
    use_backend("torch")
    import torch

    model = KerasModel(load_keras(Path(order.model), trust=order.trust))

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model.model

        def forward(self, **inputs: Any) -> tuple[Any, ...]:
            return model(inputs)

    example = {name: torch.from_numpy(np.zeros(shape, dtype)) for name, (shape, dtype) in order.inputs.items()}
    found = TorchSource(Module().eval(), example, Route("native"))
    with torch.no_grad():
        program = torch.export.export(wrapped(found), (), dict(example), strict=False)
    write_onnx(program, list(example), model.outputs, Path(order.file))


def _cannot(reason: str) -> int:
    sys.stdout.flush()
    print(f"\n{reason}", file=sys.stderr, flush=True)
    return _CANNOT


if __name__ == "__main__":
    os._exit(main())  # exit handlers of frameworks can hang
