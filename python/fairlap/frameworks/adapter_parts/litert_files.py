"""Convert models for LiteRT, and cache the files under a hash of everything that determines them.

The conversion runs in a separate process, so that TensorFlow's memory and threads are gone when LiteRT runs:
``python -m fairlap.frameworks.adapter_parts.litert_files PACKAGE BATCH WEIGHTS FILE [CALIBRATION...]``
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fairlap.errors import cause_of, shortened
from fairlap.frameworks.adapter_parts.quantized.quantized_files import QuantizedFile, model_key, quantized_file
from fairlap.frameworks.contract import Unsupported
from fairlap.machine.files.atomic_files import write_atomically
from fairlap.machine.files.private_files import make_cache_folder, tighten
from fairlap.machine.files.user_folders import work_cache
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import hash_of
from fairlap.models.code_hash import hash_of_code
from fairlap.models.registry import implementation_for, spec_at
from fairlap.models.sources.bundle import LITERT_FILE
from fairlap.models.spec import Tensor
from fairlap.models.workload import Workload

CANNOT = 3
"""The exit status if TensorFlow's converter refuses the model."""


def names_in_file(tensors: Sequence[Tensor]) -> dict[str, str]:
    """Name inputs or outputs in a converted file, by their places where TensorFlow would change names: ``image:0``."""
    keep = all(each.name.isascii() and each.name.isidentifier() for each in tensors)
    return {each.name: each.name if keep else f"place_{place}" for place, each in enumerate(tensors)}


def main(package: str, batch: str, weights_file: str, write_to: str, *calibration: str) -> int:
    """With calibration inputs the file is quantized; its inputs and outputs stay floats."""
    import tensorflow as tf

    spec = spec_at(package)
    weights = safetensors.read(Path(weights_file))
    model = implementation_for(package, "tensorflow", int(batch)).build(weights, tf.float32)
    inputs, outputs = names_in_file(spec.inputs), names_in_file(spec.outputs)

    def serve(**given: Any) -> dict[str, Any]:
        found = model({name: given[own] for name, own in inputs.items()})
        return dict(zip(outputs.values(), found, strict=True))

    shapes = {
        inputs[each.name]: tf.TensorSpec(each.sized(int(batch)), each.dtype, inputs[each.name]) for each in spec.inputs
    }
    try:
        function = tf.function(serve).get_concrete_function(**shapes)
        converter = tf.lite.TFLiteConverter.from_concrete_functions([function], model)
        if calibration:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
            converter.representative_dataset = lambda: (
                {inputs[name]: array for name, array in safetensors.read(Path(file)).items()} for file in calibration
            )
        converted = converter.convert()
    except Exception as error:
        print(cause_of(error), file=sys.stderr)
        return CANNOT
    # Another process may create the same file at the same time; the last one replaces it by an equal one.
    write_atomically(Path(write_to), converted)
    return 0


def brought_file(work: Workload) -> Path | None:
    """Find a LiteRT file that the user brought."""
    own = Path(work.package) / LITERT_FILE
    return own if work.package.startswith("/") and own.is_file() else None


def keeps_states(file: Path) -> bool:
    """Whether any tensor of a LiteRT file keeps its value from call to call."""
    from ai_edge_litert import schema_py_generated as schema

    model = schema.Model.GetRootAs(file.read_bytes(), 0)
    graphs = (model.Subgraphs(number) for number in range(model.SubgraphsLength()))
    return any(graph.Tensors(place).IsVariable() for graph in graphs for place in range(graph.TensorsLength()))


def converted_file(work: Workload) -> tuple[Path, bool]:
    """Convert the model, and return the file and whether it was in the cache."""
    converter = _version_of_converter()
    made_of = [work.package, str(work.batch), converter, hash_of(work.weights), model_key(work.package)]
    made_of.append(hash_of_code(Path(__file__).parent))
    key = hashlib.sha256("\n".join(made_of).encode()).hexdigest()[:16]
    file = work_cache() / "litert" / f"{Path(work.spec.name).stem}-b{work.batch}-{key}.tflite"
    if _is_complete(file):
        return file, True
    make_cache_folder(file.parent)
    with tempfile.TemporaryDirectory() as scratch:
        weights = Path(scratch) / "weights.safetensors"
        safetensors.write(weights, work.weights)
        _convert(work, weights, file)
    tighten(file)
    write_atomically(_length_of(file), str(file.stat().st_size).encode(), private=True)
    return file, False


def quantized_litert_file(work: Workload) -> QuantizedFile:
    version_of = _version_of_converter()

    def write(file: Path) -> None:
        weights = file.with_suffix(".safetensors")
        safetensors.write(weights, work.weights)
        _convert(work, weights, file, work.calibration)
        weights.unlink()

    return quantized_file(work, "TensorFlow's converter", version_of, "model.tflite", write)


def _version_of_converter() -> str:
    try:
        return version("tensorflow")
    except PackageNotFoundError:
        raise Unsupported("litert needs tensorflow, whose converter makes its model files") from None


def _is_complete(file: Path) -> bool:
    """Compare the file's length with the one stored in a second file, because the format has no end mark."""
    try:
        return _length_of(file).read_bytes() == str(file.stat().st_size).encode()
    except OSError:
        return False


def _length_of(file: Path) -> Path:
    return file.with_suffix(".bytes")


def _convert(work: Workload, weights: Path, file: Path, calibration: tuple[Path, ...] = ()) -> None:
    command = [sys.executable, "-P", "-m", "fairlap.frameworks.adapter_parts.litert_files"]
    command += [work.package, str(work.batch), str(weights), str(file), *map(str, calibration)]
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=quiet)
    if done.returncode == 0:
        return
    lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit status {done.returncode}"]
    if done.returncode == CANNOT:
        raise Unsupported(
            f"litert cannot run {work.spec.name}: TensorFlow's converter refuses it: {shortened(lines[-1])}"
        )
    raise RuntimeError(f"TensorFlow's converter failed on {work.spec.name}: {shortened(lines[-1])}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
