"""LiteRT files: native in LiteRT and OpenVINO. Nothing computes them in float64, so they have no float64 reference."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.engine.measurement import Notice
from fairlap.errors import cause_of, described
from fairlap.models.arrays import Arrays
from fairlap.models.sources.bundle import LITERT_FILE
from fairlap.models.sources.contract import Bundle, Opened, Route, SourceError, SourceKind
from fairlap.models.sources.imported import OnnxOnDisk
from fairlap.models.sources.inputs import inputs_of
from fairlap.models.sources.onnx_graphs.binding import require_memory
from fairlap.models.sources.sizes import bound_shapes, fill_of, given_shapes, require_known_ranges, rows
from fairlap.models.sources.tensorflow_files.tflite_graph import TfliteGraph
from fairlap.models.spec import Tensor
from fairlap.request.fields.source import Source

REFERENCE = "LiteRT's reference kernels in float32"
_OPENVINO_FILE = "model.xml"
_IDENTIFIER = b"TFL3"
_NO_CONVERSION = "there is no conversion from LiteRT's files"


class TfliteFile(SourceKind):
    title = "LiteRT"
    suffixes = (".tflite",)
    no_gradients = "a LiteRT file has operators for inference alone"

    @classmethod
    def check(cls, source: Source) -> None:
        path = Path(source.path)
        try:
            require_memory(path.stat().st_size, source.text)
            with path.open("rb") as file:
                start = file.read(8)
        except OSError as error:
            raise SourceError(f"cannot read {path}: {error.strerror}") from None
        if start[4:] != _IDENTIFIER:
            raise SourceError(f"{source.text} is damaged, or not a LiteRT file")

    @classmethod
    def open(cls, source: Source, folder: Path) -> Opened:
        graph = _read(source)
        graph.require_float32()
        names = list(graph.inputs)
        require_known_ranges(names, source)
        given = inputs_of(source)
        declared = {name: graph.sizes(tensor) for name, tensor in graph.inputs.items()}
        shapes = bound_shapes(declared, source, given_shapes(given, declared, source))
        graph.bind(shapes)
        file = folder / LITERT_FILE
        file.write_bytes(graph.packed() if graph.changed else Path(source.path).read_bytes())
        weights = graph.weights()
        dtypes = {name: graph.dtype(tensor) for name, tensor in graph.inputs.items()}
        tensors = [
            Tensor(name, shapes[name], fill_of(name, dtypes[name], rows(graph.rows_of(name)), source), dtypes[name])
            for name in names
        ]
        none = dict.fromkeys(("torch", "jax", "tensorflow", "onnx"), Route(why_not=_NO_CONVERSION))
        return Opened(
            inputs=tuple(tensors),
            outputs=tuple(graph.outputs),
            output_types={name: graph.dtype(tensor) for name, tensor in graph.outputs.items()},
            weights=weights,
            forward=_ReferenceKernels(graph, dtypes),
            routes={
                **none,
                "litert": Route("native", precisions=("fp32",)),
                "openvino": _openvino(file, graph, shapes),
            },
            reference=f"no float64 reference: compared with {REFERENCE}",
            notices=(Notice("W_NO_REFERENCE", f"no float64 reference: compared with {REFERENCE}"),),
        )

    @classmethod
    def implementation(cls, bundle: Bundle, folder: Path, framework: str) -> Any:
        return OnnxOnDisk(folder / (_OPENVINO_FILE if framework == "openvino" else LITERT_FILE))


def _read(source: Source) -> TfliteGraph:
    """LiteRT verifies the file and its operators before anything else reads it."""
    content = Path(source.path).read_bytes()
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ModuleNotFoundError:
        raise SourceError(f"{source.text} is read with the package ai-edge-litert; install it") from None
    try:
        Interpreter(model_content=content).allocate_tensors()
    except (ValueError, RuntimeError) as error:
        raise SourceError(f"LiteRT cannot load {source.text}: {described(error)}") from None
    try:
        return TfliteGraph(content)
    except (IndexError, TypeError, AttributeError) as error:  # of what LiteRT does not verify
        raise SourceError(f"{source.text} is damaged: {described(error)}") from None


class _ReferenceKernels:
    """In float32, whatever it is given: that is all that LiteRT has."""

    def __init__(self, graph: TfliteGraph, dtypes: Mapping[str, str]) -> None:
        self._graph, self._dtypes = graph, dtypes

    def __call__(self, weights: Arrays, inputs: Arrays) -> dict[str, np.ndarray]:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        interpreter = Interpreter(
            model_content=self._graph.with_weights(weights), experimental_op_resolver_type=OpResolverType.BUILTIN_REF
        )
        interpreter.allocate_tensors()
        run = interpreter.get_signature_runner()
        found = run(**{name: np.asarray(array).astype(self._dtypes[name]) for name, array in inputs.items()})
        return {name: np.array(found[name]) for name in self._graph.outputs}


def _openvino(file: Path, graph: TfliteGraph, shapes: Mapping[str, tuple[int, ...]]) -> Route:
    """With the signature's names, which OpenVINO does not read. Tensors' names bind them."""
    try:
        import openvino

        model = openvino.Core().read_model(file)
        for port, tensors in ((model.inputs, graph.inputs), (model.outputs, graph.outputs)):
            by_name = {name: each for each in port for name in each.get_names()}
            for name, tensor in tensors.items():
                by_name[tensor.name.decode()].get_tensor().set_names({name})
        if len(model.inputs) != len(graph.inputs):
            return Route(why_not=f"OpenVINO reads {len(model.inputs)} inputs of {len(graph.inputs)}")
        model.reshape({name: list(shape) for name, shape in shapes.items()})
        openvino.save_model(model, file.with_name(_OPENVINO_FILE), compress_to_fp16=False)
    except ModuleNotFoundError:
        return Route(why_not="the file is read by the package openvino, which is not installed here")
    except KeyError as error:
        return Route(why_not=f"OpenVINO reads no tensor named {error}")
    except Exception as error:  # OpenVINO raises its own errors
        return Route(why_not=cause_of(error))
    return Route("native", holds_weights=False)


KIND = TfliteFile
