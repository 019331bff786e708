"""LiteRT with XNNPACK, on a file that TensorFlow's converter makes from the TensorFlow implementation.

A converted file has neither the names nor the layouts of the weights, and the converter may fold one into another. So
weights are searched by their values: with axes in any order, bit for bit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fairlap.frameworks.adapter_parts.answers import Answers, named_outputs
from fairlap.frameworks.adapter_parts.litert_files import (
    brought_file,
    converted_file,
    keeps_states,
    names_in_file,
    quantized_litert_file,
)
from fairlap.frameworks.adapter_parts.own_threads import thread_count
from fairlap.frameworks.adapter_parts.quantized.quantized_files import QuantizedFile
from fairlap.frameworks.contract import Contestant, Framework, Phase, Settings, refuse_what_is_unknown
from fairlap.models.arrays import Arrays
from fairlap.models.spec import Tensor
from fairlap.models.workload import Workload

Array = npt.NDArray[Any]


def weights_in(interpreter: Any, given: Arrays) -> Answers:
    """Those of the given weights that are in the file, in their given layout."""
    constants: defaultdict[tuple[int, ...], list[Array]] = defaultdict(list)
    for constant in _constants(interpreter):
        constants[_sizes(constant)].append(constant)
    found: Answers = {}
    for name, weight in given.items():
        for constant in constants[_sizes(weight)]:
            turned = _turned_to(weight, constant)
            if turned is not None:
                # A copy: the interpreter refuses to run while its memory is referenced.
                found[name] = np.array(turned, dtype=np.float32, order="C")
                break
    return found


def read_back(found: Answers, given: Arrays) -> str:
    if found.keys() == given.keys():
        return "found by value in the file's bytes; the interpreter cannot be asked"
    return f"not read back: the file holds {len(found)} of {len(given)} as they are, others folded or in another form"


def _constants(interpreter: Any) -> Iterator[Array]:
    passed = {each["index"] for each in (*interpreter.get_input_details(), *interpreter.get_output_details())}
    for detail in interpreter.get_tensor_details():
        sparse = detail.get("sparsity_parameters")  # its memory is smaller than its shape
        if detail["dtype"] not in (np.float32, np.float16) or detail["index"] in passed or sparse:
            continue
        try:
            yield interpreter.tensor(detail["index"])().astype(np.float32, copy=False)
        except ValueError:  # an intermediate result, which has no memory yet
            continue


def _sizes(array: Array) -> tuple[int, ...]:
    return tuple(sorted(size for size in array.shape if size > 1))


def _turned_to(weight: Array, constant: Array) -> Array | None:
    """First and last elements keep their places in every order of the axes, which rules most candidates out quickly."""
    if constant.flat[0] != weight.flat[0] or constant.flat[-1] != weight.flat[-1]:
        return None
    aim, source = weight.squeeze(), constant.squeeze()
    for axes in permutations(range(source.ndim)):
        turned = source.transpose(axes)
        if turned.shape == aim.shape and np.array_equal(turned, aim):
            return turned.reshape(weight.shape)
    return None


_PRODUCTS = ("FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D", "BATCH_MATMUL")
_STEPS = (np.int8, np.uint8, np.int16)
_OF_WEIGHTS = ("DEQUANTIZE", "DENSIFY")  # operators that expand what a file holds in float16 or sparse
_QUANTIZED = "quantized; the answers alone prove that they are the same"
_OP_RESOLVERS = {"on": "AUTO", "off": "BUILTIN_WITHOUT_DEFAULT_DELEGATES"}  # XNNPACK is the default delegate


class LiteRT(Framework):
    name = "litert"
    packages = ("ai-edge-litert==2.3.0", "tensorflow==2.21.0")
    module = "ai_edge_litert"
    implementation = "tensorflow"
    options: ClassVar = {"xnnpack": ("on", "off")}
    tunable: ClassVar = {"xnnpack": ("off",)}
    precisions = ("fp32", "int8")
    no_precision: ClassVar = dict.fromkeys(
        ("fp16", "bf16", "autocast", "tf32"), "its kernels compute in float32 or in integers"
    )

    @classmethod
    def files(cls, work: Workload) -> tuple[Path, ...]:
        return (brought_file(work) or converted_file(work)[0],)

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        with phase("import"):
            import ai_edge_litert
            from ai_edge_litert.interpreter import Interpreter, OpResolverType
        self._version = str(ai_edge_litert.__version__)
        file, conversion = brought_file(work), "none"
        names = _own_names if file and work.precision != "int8" else names_in_file
        inputs, outputs = names(work.spec.inputs), names(work.spec.outputs)
        made: QuantizedFile | None = None
        if work.precision == "int8":
            with phase("convert"):
                made = quantized_litert_file(work)
            file = made.file
        elif file is None:
            with phase("convert"):
                file, kept = converted_file(work)
            conversion = "cached" if kept else "new"
        before = thread_count()
        with phase("build"):
            resolver = _OP_RESOLVERS[wanted.options.get("xnnpack", "on")]
            first = _interpreter(Interpreter, file, wanted.threads, getattr(OpResolverType, resolver))
        threads = 1 + thread_count() - before if before else 0
        held = _QUANTIZED if made else read_back(weights_in(first, work.weights), work.weights)
        return Contestant(
            bind=_Bindings(first, inputs, forgets=keeps_states(file)).bind,
            switching_copies=True,
            done=None,
            outputs=partial(_answers, work, outputs),
            weights=dict if made else partial(_weights, first, work),
            quantization=made.quantization if made else None,
            in_force={
                **({"threads": str(threads)} if threads else {"threads_asked": str(wanted.threads)}),
                "precision": _precision(first),
                "weights": held,
                "delegate": _delegate(first),
                "conversion": conversion,
            },
            no_memory_because="LiteRT's Python interface has no statistics of its arena",
        )


def _own_names(tensors: Sequence[Tensor]) -> dict[str, str]:
    return {each.name: each.name for each in tensors}


def _interpreter(make: Callable[..., Any], file: Path, threads: int, resolver: Any) -> Any:
    interpreter = make(model_path=str(file), num_threads=threads, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    return interpreter


class _Bindings:
    """One interpreter, whose memory holds the inputs of one binding at a time.

    A file that keeps states from call to call, of a recurrence, would answer the same inputs differently each time. So
    it ``forgets`` them in every call. ``names`` are those that inputs have in the file.
    """

    def __init__(self, interpreter: Any, names: Mapping[str, str], *, forgets: bool) -> None:
        self._interpreter, self._names, self._forgets = interpreter, names, forgets
        self._filled_by: object = None

    def bind(self, inputs: Arrays) -> Callable[[], Any]:
        interpreter, invoke = self._interpreter, self._interpreter.invoke
        details = interpreter.get_signature_runner().get_input_details()
        places = [(details[self._names[name]]["index"], array) for name, array in inputs.items()]

        def run() -> Any:
            """``invoke`` returns nothing, and the outputs are read from the interpreter."""
            if self._filled_by is not places:
                self._fill(places)
            invoke()
            return interpreter

        def run_from_zeros() -> Any:
            interpreter.reset_all_variables()
            return run()

        self._fill(places)
        return run_from_zeros if self._forgets else run

    def _fill(self, places: list[tuple[int, Any]]) -> None:
        for index, array in places:
            self._interpreter.set_tensor(index, array)
        self._filled_by = places


def _answers(work: Workload, names: Mapping[str, str], interpreter: Any) -> Answers:
    details = interpreter.get_signature_runner().get_output_details()
    found = [interpreter.get_tensor(details[names[tensor.name]]["index"]) for tensor in work.spec.outputs]
    return named_outputs(work.spec, found)


def _weights(interpreter: Any, work: Workload) -> Answers:
    """All or none, since the hash of some weights would differ."""
    found = weights_in(interpreter, work.weights)
    return found if found.keys() == work.weights.keys() else {}


def _precision(interpreter: Any) -> str:
    """Quantized where products have a result in 8 or 16 bits, or nothing is a float.

    Weights in float16 that are widened before anything is computed do not count.
    """
    details = interpreter.get_tensor_details()
    floating = {np.dtype(each["dtype"]).name for each in details if np.issubdtype(each["dtype"], np.floating)}
    operations = getattr(interpreter, "_get_ops_details", None)
    if operations is not None:
        by_index = {each["index"]: each["dtype"] for each in details}
        results = [(each["op_name"], by_index.get(place)) for each in operations() for place in each["outputs"][:1]]
        if not floating or any(kind in _STEPS for name, kind in results if name in _PRODUCTS):
            return "int8"
        if not any(kind is np.float16 for name, kind in results if name not in _OF_WEIGHTS):
            floating.discard("float16")
    return "fp32" if floating == {"float32"} else " and ".join(sorted(floating))


def _delegate(interpreter: Any) -> str:
    tell = getattr(interpreter, "_get_ops_details", None)  # not public, and may go
    if tell is None:
        return "unknown"
    return "XNNPACK" if any(each["op_name"] == "DELEGATE" for each in tell()) else "none"
