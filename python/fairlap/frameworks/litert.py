"""LiteRT with XNNPACK, on a file that TensorFlow's converter makes of the TensorFlow implementation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.frameworks.answers import Answers, named_outputs
from fairlap.frameworks.contract import Contestant, Framework, Phase, Settings
from fairlap.frameworks.litert_files import converted_file
from fairlap.frameworks.litert_weights import told, weights_in
from fairlap.frameworks.own_threads import thread_count
from fairlap.frameworks.refusals import refuse_what_is_unknown
from fairlap.workloads.workload import Arrays, Workload


class LiteRT(Framework):
    name = "litert"
    packages = ("ai-edge-litert==2.3.0", "tensorflow==2.21.0")
    module = "ai_edge_litert"

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted, lacking="its kernels there compute in float32 or in integers")
        with phase("import"):
            import ai_edge_litert
            from ai_edge_litert.interpreter import Interpreter
        self._version = str(ai_edge_litert.__version__)
        with phase("convert"):
            file, kept = converted_file(work)
        before = thread_count()
        with phase("build"):
            first = _interpreter(Interpreter, file, wanted.threads)
        threads = 1 + thread_count() - before if before else 0
        held = told(weights_in(first, work.weights), work.weights)
        ready = [first]

        def bind(inputs: Arrays) -> Callable[[], Any]:
            interpreter = ready.pop() if ready else _interpreter(Interpreter, file, wanted.threads)
            details = interpreter.get_signature_runner().get_input_details()
            for name, array in inputs.items():
                interpreter.set_tensor(details[name]["index"], array)
            return partial(_run, interpreter.invoke, interpreter)

        return Contestant(
            bind=bind,
            done=None,
            outputs=partial(_answers, work),
            weights=partial(_weights, first, work),
            in_force={
                **({"threads": str(threads)} if threads else {"threads_asked": str(wanted.threads)}),
                "precision": _precision(first),
                "weights": held,
                "delegate": _delegate(first),
                "conversion": "kept from before" if kept else "made now",
            },
            no_memory_because="LiteRT's Python interface tells no statistics of its arena",
        )

    def version(self) -> str:
        return self._version


def _interpreter(make: Callable[..., Any], file: Path, threads: int) -> Any:
    interpreter = make(model_path=str(file), num_threads=threads)
    interpreter.allocate_tensors()
    return interpreter


def _run(invoke: Callable[[], None], interpreter: Any) -> Any:
    """``invoke`` returns nothing, and whoever reads the outputs must know whose they are."""
    invoke()
    return interpreter


def _answers(work: Workload, interpreter: Any) -> Answers:
    details = interpreter.get_signature_runner().get_output_details()
    return named_outputs(
        work.spec, [interpreter.get_tensor(details[tensor.name]["index"]) for tensor in work.spec.outputs]
    )


def _weights(interpreter: Any, work: Workload) -> Answers:
    """All or none: the hash of some would be another hash."""
    found = weights_in(interpreter, work.weights)
    return found if found.keys() == work.weights.keys() else {}


def _precision(interpreter: Any) -> str:
    kinds = {np.dtype(each["dtype"]) for each in interpreter.get_tensor_details() if each["dtype"] is not np.bytes_}
    floating = {kind.name for kind in kinds if kind.kind == "f"}
    return "fp32" if floating == {"float32"} else " and ".join(sorted(floating))


def _delegate(interpreter: Any) -> str:
    tell = getattr(interpreter, "_get_ops_details", None)  # not public, and may go
    if tell is None:
        return "unknown"
    return "XNNPACK" if any(each["op_name"] == "DELEGATE" for each in tell()) else "none"
