"""LiteRT files: native in LiteRT and OpenVINO, and in other frameworks as ONNX, which is the float64 reference too.

Where an operator has no translation, or the answers are not LiteRT's, LiteRT's reference kernels are compared with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fairlap.engine.measurement import Notice
from fairlap.errors import FairlapError, cause_of, described
from fairlap.models.arrays import Arrays
from fairlap.models.onnx_import.errors import OperatorsUnsupported
from fairlap.models.sources.bundle import LITERT_FILE
from fairlap.models.sources.contract import Bundle, Opened, Route, SourceError, SourceKind
from fairlap.models.sources.given_data.reading import inputs_of
from fairlap.models.sources.given_data.sets import Sets
from fairlap.models.sources.imported import OnnxOnDisk
from fairlap.models.sources.inputs import input_sets
from fairlap.models.sources.kinds.onnx_file import implementation_of_graph, opened_graph
from fairlap.models.sources.litert_files.agreement import distances, require_agreement, why_other_answers
from fairlap.models.sources.litert_files.kernels import Kernels, kernels_for
from fairlap.models.sources.litert_files.onnx_graph import Untranslated
from fairlap.models.sources.litert_files.onnx_of_litert import onnx_model
from fairlap.models.sources.litert_files.tflite_graph import TfliteGraph
from fairlap.models.sources.onnx_graphs.binding import require_memory
from fairlap.models.sources.proof import outputs_of
from fairlap.models.sources.sizes import Bounds, bound_shapes, fill_of, given_shapes, require_known_ranges, rows
from fairlap.models.spec import Tensor
from fairlap.request.fields.source import Source

_NO_DOUBLE = "W_NO_REFERENCE"
_OPENVINO_FILE = "model.xml"
_IDENTIFIER = b"TFL3"
_CONVERTED = "converted from LiteRT to ONNX by fairlap"
_EXACT = "the graph of the LiteRT file in NumPy float64 by fairlap's importer"
_AGREES = 1e-4  # relative to the largest number: what another model would exceed, and float32 does not
_WIDENED = "float16 weights widened to float32"
_HOLDS_FLOAT16 = (
    "the file holds weights in float16, to which they were rounded when it was written; LiteRT and OpenVINO widen them "
    "to float32 when they load it"
)


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
        graph, was_tried = _read(source)
        graph.require_no_states()
        wide = graph.expanded()
        wide.require_known_types()
        names = list(graph.inputs)
        require_known_ranges(names, source)
        given = inputs_of(source)
        declared = {name: graph.sizes(tensor) for name, tensor in graph.inputs.items()}
        shapes = bound_shapes(declared, source, given_shapes(given, declared, source))
        graph.bind(shapes)
        wide.bind(shapes)
        file = folder / LITERT_FILE
        file.write_bytes(graph.packed() if graph.changed else Path(source.path).read_bytes())
        if not was_tried:
            _require_sizes_that_fit(file, graph, source)
        own_types = ("float16",) if graph.holds_float16 else ()
        native = f"native, {_WIDENED}" if own_types else "native"
        dtypes = {name: graph.dtype(tensor) for name, tensor in graph.inputs.items()}
        tensors = [
            Tensor(name, shapes[name], fill_of(name, dtypes[name], _bounds(wide, name), source), dtypes[name])
            for name in names
        ]
        kernels = Kernels(wide, dtypes)
        found = Opened(
            inputs=tuple(tensors),
            outputs=tuple(graph.outputs),
            output_types={name: graph.dtype(tensor) for name, tensor in graph.outputs.items()},
            weights=wide.weights(),
            forward=kernels,
            routes={},
            reference=f"no float64 reference: compared with {kernels.how}",
            notices=(Notice("W_FILE_PRECISION", _HOLDS_FLOAT16),) if own_types else (),
        )
        add = _with_reference_in_steps if wide.is_quantized else _with_reference
        found = add(found, wide, kernels, given, source, folder)
        natives = {
            "litert": Route(native, precisions=("fp32",)),
            "openvino": msgspec.structs.replace(_openvino(native, file, graph, shapes), precisions=found.precisions),
        }
        return replace(found, routes={**found.routes, **natives}, own_types=(*own_types, *found.own_types))

    @classmethod
    def implementation(cls, bundle: Bundle, folder: Path, framework: str) -> Any:
        if framework == "openvino":
            return OnnxOnDisk(folder / _OPENVINO_FILE)
        return implementation_of_graph(folder, framework, bundle.source)


def _read(source: Source) -> tuple[TfliteGraph, bool]:
    """Read the file once LiteRT has verified it, and report whether that has tried its operators with its own sizes.

    Sizes that are open are 1 in the file, which its operators may not take.
    """
    content = Path(source.path).read_bytes()
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ModuleNotFoundError:
        raise SourceError(f"{source.text} is read with the package ai-edge-litert; install it") from None
    try:
        interpreter = Interpreter(model_content=content)
        is_fixed = all((each["shape_signature"] >= 0).all() for each in interpreter.get_input_details())
        if is_fixed:
            interpreter.allocate_tensors()
    except (ValueError, RuntimeError) as error:
        raise _unloadable(source, error) from None
    try:
        return TfliteGraph(content), is_fixed
    except (IndexError, TypeError, AttributeError) as error:  # of what LiteRT does not verify
        raise SourceError(f"{source.text} is damaged: {described(error)}") from None


def _require_sizes_that_fit(file: Path, graph: TfliteGraph, source: Source) -> None:
    """Of a file whose sizes were open, as it is written with those asked for."""
    from ai_edge_litert.interpreter import Interpreter

    try:
        Interpreter(model_path=str(file)).allocate_tensors()
    except (ValueError, RuntimeError) as error:
        if graph.custom_operators:  # LiteRT has some of them, and only its text tells a missing one from sizes
            raise _unloadable(source, error) from None
        sizes = ", ".join(f"{name} of {list(tensor.shape)}" for name, tensor in graph.inputs.items())
        raise SourceError(
            f"LiteRT cannot run {source.text} with {sizes}: {described(error)}", code="E_SHAPES"
        ) from None


def _unloadable(source: Source, error: Exception) -> SourceError:
    return SourceError(f"LiteRT cannot load {source.text}: {described(error)}")


def _bounds(graph: TfliteGraph, name: str) -> Bounds | None:
    """Of whole numbers that index a table, or that are in steps: all of their type."""
    if (found := rows(graph.rows_of(name))) is None and graph.is_in_steps(graph.inputs[name]):
        limits = np.iinfo(graph.dtype(graph.inputs[name]))
        return Bounds(int(limits.min), int(limits.max) + 1)
    return found


def _with_reference_in_steps(
    found: Opened, graph: TfliteGraph, kernels: Kernels, given: Sets, source: Source, folder: Path
) -> Opened:
    """Take the same graph in ONNX, each operator of which must agree with LiteRT's own, or refuse the file.

    LiteRT's own answers are among the right ones: its kernels round in fixed-point numbers.
    """
    try:
        model = onnx_model(graph)
        sample = input_sets(found.inputs, given, None, {"inputs": 0})["inputs"]
        own, agreement = _agreeing_kernels(graph, kernels, sample, folder)
        translated = opened_graph(model, source, folder, Route(_CONVERTED), list(model.graph.input))
        _require_double(translated)
    except ModuleNotFoundError as error:
        raise SourceError(f"a quantized LiteRT file is read with the package {error.name}; install it") from None
    except (Untranslated, OperatorsUnsupported) as error:
        raise SourceError(f"{source.text} is quantized, and its answers cannot be checked: {error}") from None
    right = translated.right_answers
    if right is not None:
        right = replace(right, rounded=(*right.rounded, own.with_own_weights))
    reference = f"{_EXACT}, and with {own.how} {agreement}"
    return replace(_translated(found, translated, reference), right_answers=right)


def _agreeing_kernels(graph: TfliteGraph, kernels: Kernels, sample: Arrays, folder: Path) -> tuple[Kernels, str]:
    """Find LiteRT's kernels that the graph in ONNX agrees with: some reference kernels in steps are wrong."""
    first: Untranslated | None = None
    for name in kernels_for(graph):
        own = Kernels(graph, kernels.dtypes, name)
        try:
            return own, require_agreement(distances(graph, own.inside(sample), folder))
        except Untranslated as error:
            first = first or error
    assert first is not None
    raise first


def _translated(found: Opened, translated: Opened, reference: str) -> Opened:
    return replace(
        translated,
        inputs=found.inputs,
        output_types=found.output_types,
        routes={name: _renamed(route) for name, route in translated.routes.items()},
        reference=reference,
        notices=(*translated.notices, *found.notices),
    )


def _with_reference(
    found: Opened, graph: TfliteGraph, kernels: Kernels, given: Sets, source: Source, folder: Path
) -> Opened:
    """Add the same graph in ONNX where there is one, and else report why the reference is in float32."""
    try:
        model = onnx_model(graph)
        translated = opened_graph(model, source, folder, Route(_CONVERTED), list(model.graph.input))
        _require_double(translated)
        sample = input_sets(found.inputs, given, None, {"inputs": 0})["inputs"]
        own = outputs_of(kernels, found.weights, sample)
        if why := why_other_answers(outputs_of(translated.forward, translated.weights, sample), own, _AGREES):
            raise Untranslated(why)
    except ModuleNotFoundError as error:
        return _without_reference(found, f"the conversion needs the package {error.name}; install it")
    except (Untranslated, FairlapError) as error:
        return _without_reference(found, str(error))
    return _translated(found, translated, f"{_EXACT}, which agrees with {kernels.how}")


def _require_double(translated: Opened) -> None:
    if any(notice.code == _NO_DOUBLE for notice in translated.notices):
        raise Untranslated(f"its translation has {translated.reference}")


def _without_reference(found: Opened, why: str) -> Opened:
    none = dict.fromkeys(("torch", "jax", "tensorflow", "onnx"), Route(why_not=f"it was not converted: {why}"))
    notice = Notice(_NO_DOUBLE, f"{found.reference} ({why})")
    return replace(found, routes=none, notices=(notice, *found.notices))


def _renamed(route: Route) -> Route:
    name = route.name if route.name == _CONVERTED else f"{_CONVERTED}, {route.name}"
    return msgspec.structs.replace(route, name=name)


def _openvino(native: str, file: Path, graph: TfliteGraph, shapes: Mapping[str, tuple[int, ...]]) -> Route:
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
    return Route(native, holds_weights=False)


KIND = TfliteFile
