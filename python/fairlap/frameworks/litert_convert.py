"""A model's TensorFlow implementation as a file for LiteRT. It runs in a process of its own, so that TensorFlow's
memory and threads are gone when LiteRT runs: ``python -m fairlap.frameworks.litert_convert PACKAGE BATCH WEIGHTS FILE``
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from fairlap.errors import described
from fairlap.whole_files import write_whole
from fairlap.workloads import safetensors

CANNOT = 3
"""The exit status when TensorFlow's converter refuses the model."""


def main(package: str, batch: str, weights_file: str, write_to: str) -> int:
    import tensorflow as tf

    spec = import_module(f"{package}.spec").SPEC
    model = import_module(f"{package}.tensorflow_model").build(safetensors.read(Path(weights_file)), tf.float32)
    names = [tensor.name for tensor in spec.outputs]

    def serve(**inputs: Any) -> dict[str, Any]:
        return dict(zip(names, model(inputs), strict=True))

    shapes = {each.name: tf.TensorSpec(each.sized(int(batch)), each.dtype, each.name) for each in spec.inputs}
    try:
        function = tf.function(serve).get_concrete_function(**shapes)
        converted = tf.lite.TFLiteConverter.from_concrete_functions([function], model).convert()
    except Exception as error:
        print(described(error), file=sys.stderr)
        return CANNOT
    # Another process may make the same file at the same time; whoever comes last replaces it by an equal one.
    write_whole(Path(write_to), converted)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
