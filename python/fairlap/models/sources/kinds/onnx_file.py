"""ONNX files: native in ONNX Runtime and OpenVINO, and through fairlap's importer in the other frameworks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fairlap.engine.measurement import Notice
from fairlap.errors import cause_of
from fairlap.models.arrays import Arrays
from fairlap.models.onnx_import.errors import (
    DimensionsUnbound,
    ModelFileInvalid,
    OperatorsUnsupported,
    SizesDoNotFit,
)
from fairlap.models.onnx_import.files.model_file import read_model
from fairlap.models.onnx_import.graph import Graph
from fairlap.models.onnx_import.subgraphs import graphs_in, graphs_under
from fairlap.models.sources.contract import (
    Bundle,
    Forward,
    Learner,
    Opened,
    RightAnswers,
    RoundingsInside,
    Route,
    SourceKind,
    known_dtype,
)
from fairlap.models.sources.given_data.reading import inputs_of
from fairlap.models.sources.given_data.sets import Sets
from fairlap.models.sources.imported import IMPORTED, Imported, OnnxOnDisk
from fairlap.models.sources.inputs import input_sets
from fairlap.models.sources.learning.graph_learner import learner_of_graph
from fairlap.models.sources.learning.loss import is_code, require_trusted_loss
from fairlap.models.sources.learning.loss_graph import as_tensors, own_loss_on, with_own_loss
from fairlap.models.sources.learning.statistics_of_graph import give_statistics_their_own_arrays
from fairlap.models.sources.onnx_graphs.arrays_beside import with_arrays_inside
from fairlap.models.sources.onnx_graphs.batch_axes import batch_axes
from fairlap.models.sources.onnx_graphs.binding import (
    bound_model,
    declared_sizes,
    external_files,
    input_values,
    require_room,
)
from fairlap.models.sources.onnx_graphs.graphs_by_size import OPEN, OtherSizes
from fairlap.models.sources.onnx_graphs.imported_reference import (
    InFloat32,
    computes_in,
    imported_in_float32,
    imported_reference,
    own_types,
    right_answers,
    roundings_inside,
)
from fairlap.models.sources.onnx_graphs.maps import with_arrays_for_maps
from fairlap.models.sources.onnx_graphs.ranges import integer_bounds
from fairlap.models.sources.onnx_graphs.reference import DoubleGraph, RuntimeGraph, session_of
from fairlap.models.sources.onnx_graphs.work import counted_work, most_elements
from fairlap.models.sources.proof import DrawsNumbers, outputs_of
from fairlap.models.sources.sizes import fill_of, given_shapes, require_known_ranges
from fairlap.models.spec import Dtype, Tensor
from fairlap.request.fields.source import Source
from fairlap.request.work import PRECISIONS_OF_MODELS, Precision

BOUND = "model.onnx"
IMPORTED_FROM = "bound.onnx"  # where the other one has open sizes
_AGREES = 1e-3  # relative to the largest output: what another model would exceed
_SAMPLES = 3  # that both must agree on: a wrong operator may not show in one
_DRAWING = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}


class OnnxFile(SourceKind):
    title = "ONNX"
    code_of_other_files = ModelFileInvalid.code
    no_gradients = ""
    names_dimensions = True
    takes_custom_operators = True
    suffixes = (".onnx",)

    @classmethod
    def files(cls, source: Source) -> tuple[Path, ...]:
        path = Path(source.path)
        return (path, *external_files(read_model(path), path.parent))

    @classmethod
    def open(cls, source: Source, folder: Path) -> Opened:
        require_trusted_loss(source)
        given = inputs_of(source)
        values = input_values(read_model(Path(source.path)))
        model = bound_model(source, given_shapes(given, declared_sizes(values), source), folder)
        model = with_arrays_for_maps(model)
        if source.loss:
            give_statistics_their_own_arrays(model)
        if source.mix is not None:
            (folder / OPEN).write_bytes(_with_open_sizes(model, values).SerializeToString())
        found = opened_graph(model, source, folder, Route("native"), values)
        if is_code(source.loss):
            found = _with_own_loss(found, given, source, folder)
        names = {axis.dim_param for value in values for axis in value.type.tensor_type.shape.dim}
        return replace(found, dims=tuple(name for name, _ in source.dims if name in names))

    @classmethod
    def implementation(cls, bundle: Bundle, folder: Path, framework: str) -> Any:
        return implementation_of_graph(folder, framework, bundle.source)

    @classmethod
    def learner(cls, source: Source, folder: Path) -> Learner:
        return learner_of_graph(_imported_from(folder), source)


def _with_own_loss(found: Opened, given: Sets, source: Source, folder: Path) -> Opened:
    """Export the loss of what the reference answers to the first inputs."""
    sample = input_sets(found.inputs, given, None, {"inputs": 0})["inputs"]
    answers = outputs_of(found.forward, found.weights, sample)
    outputs = [np.asarray(answers[name]).astype(found.output_types[name]) for name in found.outputs]
    return replace(found, routes=with_own_loss(found.routes, source, as_tensors(outputs), folder))


def _save_as_it_loads(model: Any, declared: list[Any], folder: Path, custom_ops: str) -> Any:
    """Write the bound graph, and return it; with the file's open sizes where a branch does not fit the bound ones.

    ONNX Runtime then refuses the whole graph, although the branch is not taken.
    """
    file = folder / BOUND
    file.write_bytes(model.SerializeToString())
    if not any(map(graphs_in, model.graph.node)) or _loads(file, custom_ops):
        return model
    with_open_sizes = _with_open_sizes(model, declared)
    file.write_bytes(with_open_sizes.SerializeToString())
    if _loads(file, custom_ops):
        return with_open_sizes
    file.write_bytes(model.SerializeToString())
    return model


def _with_open_sizes(model: Any, declared: list[Any]) -> Any:
    by_name = {value.name: value for value in declared}
    found = type(model)()
    found.CopyFrom(model)
    for value in found.graph.input:
        value.CopyFrom(by_name.get(value.name, value))
    return found


def _loads(file: Path, custom_ops: str) -> bool:
    try:
        session_of(str(file), optimised=True, custom_ops=custom_ops)
    except ModuleNotFoundError:
        return True
    except Exception:  # of ONNX Runtime
        return False
    return True


def opened_graph(model: Any, source: Source, folder: Path, native: Route, declared: list[Any]) -> Opened:
    """Write a bound graph for every framework that reads it or gets it through the importer.

    ``declared`` are its inputs as the file has them.
    """
    require_no_drawing(model)
    loaded = _save_as_it_loads(model, declared, folder, source.custom_ops)
    inputs = tensors_of(model, source)
    if loaded is not model:
        (folder / IMPORTED_FROM).write_bytes(model.SerializeToString())
    found, missing = _reference(loaded, _imported_from(folder), inputs, source)
    counted = counted_work(model)
    imported = Route(why_not=missing) if missing else Route(IMPORTED, precisions=found.precisions, in_training=True)
    native = msgspec.structs.replace(native, precisions=found.precisions)
    return Opened(
        inputs=tuple(inputs),
        outputs=tuple(value.name for value in model.graph.output),
        output_types={value.name: _dtype(value) for value in model.graph.output},
        weights=found.weights,
        forward=found.forward,
        in_float32=found.in_float32,
        roundings_inside=found.roundings_inside,
        right_answers=found.right_answers,
        precisions=found.precisions,
        own_types=found.own_types,
        routes={"onnx": native, **dict.fromkeys(("torch", "jax", "tensorflow"), imported)},
        reference=found.how,
        batch_axes=batch_axes(model, declared),
        multiplications=counted.multiplications,
        uncounted=counted.uncounted,
        notices=found.notices,
    )


def implementation_of_graph(folder: Path, framework: str, source: Source) -> Any:
    reads_files, sizes = framework in ("onnx", "openvino"), source.at_each_size
    if not sizes:
        if reads_files:
            return OnnxOnDisk(folder / BOUND)
        loss = own_loss_on(framework, source, folder)
        return Imported.from_file(_imported_from(folder), framework, by_batch=bool(source.loss), loss=loss)
    if reads_files:
        return OnnxOnDisk(folder / OPEN, takes_other_sizes=True)
    others = [dict(each.dims) for each in sizes if each.dims != source.dims]
    return Imported.from_file(_imported_from(folder), framework, other_sizes=OtherSizes(folder / OPEN, others))


def _imported_from(folder: Path) -> Path:
    bound = folder / IMPORTED_FROM
    return bound if bound.is_file() else folder / BOUND


def require_no_drawing(model: Any) -> None:
    """Frameworks draw other numbers, also from the same seed."""
    for graph in (inner for each in (model.graph, *model.functions) for inner in graphs_under(each)):
        for node in (node for node in graph.node if node.op_type in _DRAWING):
            raise DrawsNumbers(f"the model draws random numbers, by {node.op_type} {node.name!r}")


@dataclass(frozen=True)
class _Reference:
    weights: Arrays
    forward: Forward
    how: str
    in_float32: Forward | None = None
    roundings_inside: RoundingsInside | None = None
    notices: tuple[Notice, ...] = ()
    right_answers: RightAnswers | None = None
    precisions: tuple[Precision, ...] = PRECISIONS_OF_MODELS
    own_types: tuple[str, ...] = ()


def _reference(model: Any, file: Path, inputs: list[Tensor], source: Source) -> tuple[_Reference, str]:
    """Make the reference, and report what the importer lacks, so that nothing can be imported.

    The reference is by the importer; where it lacks an operator, by onnx's own evaluator where that agrees with ONNX
    Runtime; else by ONNX Runtime in float32.
    """
    try:
        graph, forward = imported_reference(file)
    except OperatorsUnsupported as error:
        missing = str(error)
    except SizesDoNotFit as error:
        if not (source.dims or source.shapes):
            raise
        sizes = ", ".join(f"{each.name}:{'x'.join(map(str, each.shape))}" for each in inputs)
        raise SizesDoNotFit(
            f"{source.text} does not take inputs of {sizes}; give other sizes with --dims or --shapes ({error})",
            code=DimensionsUnbound.code,
        ) from error
    else:
        require_room(max(tensor.size for each in graph.graphs() for tensor in each.values.values()), source.text)
        how = "the ONNX graph in NumPy float64 by fairlap's importer"
        weights = graph.weights if _is_float32(graph) else InFloat32(graph.weights)
        own = own_types(graph)
        if types := computes_in(graph):
            right = right_answers(graph, types)
            notices = (_of_few_bits(types),)
            return _Reference(weights, forward, how, None, None, notices, right, ("fp32",), own), ""
        precisions = PRECISIONS_OF_MODELS if _is_float32(graph) else ("fp32",)
        plain, inside = imported_in_float32(graph), roundings_inside(graph)
        return _Reference(weights, forward, how, plain, inside, precisions=precisions, own_types=own), ""
    require_room(most_elements(model), source.text)
    model = with_arrays_inside(model, file.parent)
    weights = float_weights(model)
    given = inputs_of(source)
    samples = list(input_sets(inputs, given, None, {f"sample-{seed}": seed for seed in range(_SAMPLES)}).values())
    double, why_no_double = _tried(DoubleGraph, model, weights, samples[0])
    runtime, why_no_runtime = _tried(partial(RuntimeGraph, custom_ops=source.custom_ops), model, weights, samples[0])
    if double is not None and runtime is not None:
        why_not = (_why_other_answer(double, runtime, weights, sample) for sample in samples)
        why_no_double = next(filter(None, why_not), "")
    if double is not None and not why_no_double:
        return _Reference(weights, double, "the ONNX graph in double precision by onnx.reference", runtime), missing
    if runtime is not None:
        why = why_no_double.rstrip(".")
        how = f"no float64 reference: compared with ONNX Runtime in float32, not optimised, since onnx.reference {why}"
        return _Reference(weights, runtime, how, None, None, (Notice("W_NO_REFERENCE", f"{how} ({missing})"),)), missing
    reasons = f"onnx.reference {why_no_double}; ONNX Runtime {why_no_runtime}"
    raise OperatorsUnsupported(f"{missing}; and there is nothing to compare with: {reasons}")


def _of_few_bits(types: tuple[str, ...]) -> Notice:
    return Notice(
        "W_FILE_PRECISION",
        f"the file computes in {', '.join(types)}: frameworks keep these types or wider ones, and answers may be off "
        "by what that rounds away",
    )


def _is_float32(graph: Graph) -> bool:
    """Whether a precision can be chosen; weights of fewer bits are meant to stay in them."""
    return all(array.dtype == np.float32 for array in graph.weights.values())


def _tried(kind: Any, model: Any, weights: Arrays, sample: Arrays) -> tuple[Forward | None, str]:
    """Compute the model with inputs and weights that are moved by rounding, or report why it cannot."""
    try:
        forward = kind(model)
        moved = outputs_of(forward, weights, sample, 0)
    except ModuleNotFoundError:
        return None, "is not installed"
    except MemoryError:
        raise
    except Exception as error:  # its operators raise what they like
        return None, f"fails: {cause_of(error)}"
    finite = all(np.isfinite(array).all() for array in moved.values())
    return (forward, "") if finite else (None, "gives numbers that are not finite")


def _why_other_answer(double: Forward, runtime: Forward, weights: Arrays, sample: Arrays) -> str:
    """Why they are not the same model, since onnx.reference gets some operators wrong; empty where they are."""
    exact, other = outputs_of(double, weights, sample), outputs_of(runtime, weights, sample)
    for name, array in other.items():
        sizes, wanted = ("x".join(map(str, each.shape)) or "one number" for each in (exact[name], array))
        if exact[name].shape != array.shape:
            return f"gives {name} the size {sizes} where ONNX Runtime gives {wanted}"
        off, largest = np.abs(exact[name] - array).max(initial=0.0), np.abs(array).max(initial=0.0)
        if not off <= _AGREES * largest:
            return f"is off by {off:.1e} from ONNX Runtime in {name}, whose largest number is {largest:.1e}"
    return ""


def tensors_of(model: Any, source: Source) -> list[Tensor]:
    """Describe the inputs with what may be drawn for them: as asked for, or found by tracing, or plain."""
    values = input_values(model)
    require_known_ranges([value.name for value in values], source)
    bounds = integer_bounds(model)
    found = []
    for value in values:
        shape = tuple(axis.dim_value for axis in value.type.tensor_type.shape.dim)
        dtype = _dtype(value)
        found.append(Tensor(value.name, shape, fill_of(value.name, dtype, bounds.get(value.name), source), dtype))
    return found


def float_weights(model: Any) -> dict[str, np.ndarray]:
    """Select the float32 initializers, which every framework holds by name.

    Others are constants of the graph, and so are single numbers and exponents, as for the importer: a negative number
    to the power of 2.0000001 is not a number.
    """
    from onnx import TensorProto, numpy_helper

    nodes = (node for graph in graphs_under(model.graph) for node in graph.node)
    exponents = {node.input[1] for node in nodes if node.op_type == "Pow"}
    return {
        tensor.name: numpy_helper.to_array(tensor)
        for tensor in model.graph.initializer
        if tensor.data_type == TensorProto.FLOAT and tensor.dims and tensor.name not in exponents
    }


def _dtype(value: Any) -> Dtype:
    from onnx import helper

    kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    return known_dtype(value.name, str(np.dtype(kind)))


KIND = OnnxFile
