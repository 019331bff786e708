"""PyTorch modules as sources: native in PyTorch, and through an ExportedProgram in the other frameworks.

The program is exported once, when the model is opened. What fails there is the outcome of the frameworks that need
it, and no one else's.
"""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fairlap.errors import cause_of
from fairlap.models.arrays import Arrays
from fairlap.models.sources.contract import Forward, Opened, Route, SourceError, known_dtype
from fairlap.models.sources.imported import IMPORTED, Imported, OnnxOnDisk
from fairlap.models.sources.onnx_graphs.batch_axes import batch_axes
from fairlap.models.sources.onnx_graphs.binding import input_values
from fairlap.models.sources.onnx_graphs.ranges import integer_bounds
from fairlap.models.sources.onnx_graphs.work import CountedWork, counted_work
from fairlap.models.sources.sizes import Bounds, fill_of, require_known_ranges
from fairlap.models.spec import Dtype, Fill, Tensor
from fairlap.request.fields.source import Source

ONNX_FILE, OPENVINO_FILE = "exported.onnx", "exported.xml"
NAMES_FILE = "weight-names.json"  # of a model that is trained
_HELD = "module."  # what the export puts before the names of what ``wrapped`` holds
EXPORTED = "exported to ONNX by PyTorch"
_OPENVINO = "from the ExportedProgram by OpenVINO"


@dataclass(frozen=True)
class TorchSource:
    """``module`` takes the example's inputs and returns tensors in any nesting."""

    module: Any
    example: Mapping[str, Any]  # tensors, in the order of the arguments
    native: Route
    by_place: tuple[str, ...] = ()  # inputs that the module takes by place only
    fills: Mapping[str, Fill] | None = None  # what is drawn, where the example has shapes and types alone

    def __call__(self, inputs: Mapping[str, Any]) -> Any:
        return self.module(*self.places(inputs), **self.named(inputs))

    def places(self, inputs: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(inputs[name] for name in self.by_place)

    def named(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        return {name: each for name, each in inputs.items() if name not in self.by_place}


def flattened(result: Any) -> list[tuple[str, Any]]:
    """All tensors of a result, with the names that it has for them."""
    import torch

    if isinstance(result, torch.Tensor):
        return [("", result)]
    if isinstance(result, Mapping):
        pairs = list(result.items())
    elif isinstance(result, tuple | list):
        pairs = [(str(number), each) for number, each in enumerate(result)]
    else:
        return []
    return [(f"{name}.{inner}" if inner else str(name), each) for name, own in pairs for inner, each in flattened(own)]


def returns_tensors(result: Any) -> tuple[Any, ...]:
    return tuple(each for _, each in flattened(result))


def wrapped(found: TorchSource) -> Any:
    """Wrap the module to return a tuple of tensors, with the weights by the module's own names."""
    import torch

    class Flat(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = found.module

        def state_dict(self, *_: Any, **__: Any) -> dict[str, Any]:
            state: dict[str, Any] = self.module.state_dict()
            return state

        def forward(self, **inputs: Any) -> tuple[Any, ...]:
            result = self.module(*[inputs[name] for name in by_place], **{name: inputs[name] for name in by_name})
            return returns_tensors(result)

    by_place = found.by_place
    by_name = [name for name in found.example if name not in by_place]
    return Flat()


def require_no_sizes(source: Source) -> None:
    if source.shapes or (source.dims and not source.among_others) or source.batch is not None:
        raise SourceError(f"the example inputs decide the sizes of {source.text}; change them there", code="E_SHAPES")


def opened_module(found: TorchSource, source: Source, folder: Path) -> Opened:
    import torch

    if not found.example:
        raise SourceError("the model has no inputs, so nothing could show that it computes", code="E_SOURCE_INPUTS")
    require_known_ranges(list(found.example), source)
    module = found.module
    _require_float32(module)
    with torch.no_grad():
        named = flattened(found(found.example))
    if not named:
        raise SourceError("the model returns no tensors; return one, or a tuple, list or dict of them")
    outputs = [name or "output" for name, _ in named]
    routes = {"torch": found.native, **_exported(found, outputs, folder, learns=bool(source.loss))}
    ranges, axes, counted = _read_from_onnx(folder)
    inputs = [_tensor(name, each, ranges, source, found.fills) for name, each in found.example.items()]
    return Opened(
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        output_types={name: _dtype(name, each) for name, (_, each) in zip(outputs, named, strict=True)},
        weights={name: tensor.detach().cpu().contiguous().numpy() for name, tensor in float_tensors(module).items()},
        forward=_in_double(found, outputs),
        routes=routes,
        reference="the PyTorch module in float64",
        in_float32=_in_float32(found, outputs),
        example=None if found.fills else {name: each.detach().cpu().numpy() for name, each in found.example.items()},
        batch_axes=axes,
        multiplications=counted.multiplications if counted else None,
        uncounted=counted.uncounted if counted else (),
    )


def _require_float32(module: Any) -> None:
    """At once, not once in each contestant."""
    import torch

    others = {each.dtype for each in module.parameters() if each.is_floating_point()}
    others |= {each.dtype for each in module.buffers() if each.dtype in (torch.float16, torch.bfloat16)}
    if others := others - {torch.float32}:
        names = ", ".join(sorted(str(each).removeprefix("torch.") for each in others))
        raise SourceError(f"the model has weights of {names}; only models in float32 are raced: call .float() on it")


def implementation_of_module(
    folder: Path, framework: str, load: Callable[[], TorchSource], source: Source | None = None
) -> Any:
    """``load`` gives the module again, in the process of a contestant; ``source`` has its loss, if it is trained."""
    learns = source is not None and bool(source.loss)
    if framework == "torch":
        return _Native(load, source if learns else None)
    if learns:
        return Imported(folder / ONNX_FILE, framework, weight_names=weight_names_in(folder))
    if framework == "openvino" and (folder / OPENVINO_FILE).is_file():
        return OnnxOnDisk(folder / OPENVINO_FILE)
    if framework in ("onnx", "openvino"):
        return OnnxOnDisk(folder / ONNX_FILE)
    return Imported(folder / ONNX_FILE, framework, own=True)


class _Native:
    def __init__(self, load: Callable[[], TorchSource], learnt: Source | None) -> None:
        self._load, self._learnt = load, learnt

    def build(self, weights: Arrays) -> Any:
        """With the weights that all contestants have, also where the module draws its own."""
        import torch

        found = self._load()
        module = found.module
        held = {name: torch.tensor(array) for name, array in weights.items()}
        missing = set(held) - set(module.state_dict())
        if missing:
            raise SourceError(f"the model has no {min(missing)} any more; does it change between calls?")
        module.load_state_dict(held, strict=False)
        if self._learnt is None:
            return wrapped(found)
        from fairlap.models.sources.learning.torch_learner import trainable

        return trainable(found, self._learnt)


def _exported(found: TorchSource, outputs: list[str], folder: Path, *, learns: bool) -> dict[str, Route]:
    """Export the module; where it ``learns``, without what folds its weights, whose names are kept."""
    import torch

    began_s = time.monotonic()
    try:
        program = torch.export.export(wrapped(found), (), dict(found.example), strict=False)
    except Exception as error:  # of torch.export and of the module itself
        none = Route(why_not=f"PyTorch cannot export it: {cause_of(error)}")
        return dict.fromkeys(("onnx", "openvino", "jax", "tensorflow"), none)
    exported_s = time.monotonic() - began_s
    inputs = list(found.example)
    onnx = _converted(lambda: write_onnx(program, inputs, outputs, folder / ONNX_FILE, fold=not learns), exported_s)
    if learns:
        imported = onnx if onnx.why_not else _importable(onnx, folder)
        if not imported.why_not and (missing := write_weight_names(found.module, folder)):
            imported = Route(why_not=f"PyTorch's export of it has no array {missing}")
        route = _named(imported, f"{IMPORTED}, {EXPORTED}")
        return dict.fromkeys(("jax", "tensorflow"), msgspec.structs.replace(route, holds_weights=True))
    openvino = _converted(lambda: _to_openvino(program, inputs, outputs, folder / OPENVINO_FILE), exported_s)
    routes = {"onnx": _named(onnx, EXPORTED), "openvino": _named(openvino, _OPENVINO)}
    if openvino.why_not and not onnx.why_not:
        routes["openvino"] = routes["onnx"]
    imported = onnx if onnx.why_not else _importable(onnx, folder)
    return routes | dict.fromkeys(("jax", "tensorflow"), _named(imported, f"{IMPORTED}, {EXPORTED}"))


def _converted(write: Callable[[], int], before_s: float) -> Route:
    began_s = time.monotonic()
    try:
        size = write()
    except ModuleNotFoundError as error:
        return Route(why_not=f"the conversion needs the package {error.name}; install it")
    except Exception as error:  # every converter raises its own errors
        return Route(why_not=cause_of(error))
    return Route("converted", conversion_s=before_s + time.monotonic() - began_s, conversion_bytes=size)


def _named(route: Route, name: str) -> Route:
    if route.why_not:
        return Route(why_not=route.why_not)
    return Route(name, "", route.conversion_s, route.conversion_bytes, holds_weights=False)


def _importable(onnx: Route, folder: Path) -> Route:
    from fairlap.errors import FairlapError
    from fairlap.models.sources.imported import imported_reference

    try:
        imported_reference(folder / ONNX_FILE)
    except FairlapError as error:
        return Route(why_not=str(error))
    return onnx


def write_onnx(program: Any, inputs: list[str], outputs: list[str], file: Path, *, fold: bool = True) -> int:
    """From an ExportedProgram. Raises for an operator that does not exist."""
    import onnx
    import torch

    found = torch.onnx.export(program, dynamo=True, verbose=False, optimize=fold)
    if not fold:
        _simplify(found.model)
    model = found.model_proto
    _rename(model, inputs, outputs)
    onnx.save_model(model, file)
    onnx.checker.check_model(file)
    return file.stat().st_size


def _simplify(model: Any) -> None:
    """Fold what depends on no weight, such as sizes and sequences of parts; the weights stay as the module has them."""
    from onnxscript.optimizer import fold_constants

    def should_fold(node: Any) -> bool | None:
        weights = (each for each in node.inputs if each is not None and each.is_initializer())
        return False if any(each.dtype is not None and each.dtype.is_floating_point() for each in weights) else None

    fold_constants(model, should_fold=should_fold)


def write_weight_names(module: Any, folder: Path) -> str:
    """Write the module's own name of each weight, by that of the export, which adds where the module was held.

    A tensor that the module has under several names has the first one. Returns one that is missing in the export.
    """
    from fairlap.models.onnx_import.load import load_graph

    first = {id(each): name for name, each in float_tensors(module).items()}
    held = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    names = {}
    for name, array in load_graph(folder / ONNX_FILE).weights.items():
        own = held.get(name.removeprefix(_HELD))
        if own is not None and np.array_equal(own.detach().numpy(), array):
            names[name] = first[id(own)]
    (folder / NAMES_FILE).write_bytes(msgspec.json.encode(names))
    trained = (name for name, each in module.named_parameters() if each.requires_grad and name in first.values())
    return next((name for name in trained if name not in names.values()), "")


def weight_names_in(folder: Path) -> dict[str, str]:
    return msgspec.json.decode((folder / NAMES_FILE).read_bytes(), type=dict[str, str])


def _rename(model: Any, inputs: list[str], outputs: list[str]) -> None:
    """Rename the export's inputs and outputs, which exporters name as they like, in the program's order."""
    graph = model.graph
    given = [value for value in graph.input if value.name not in {tensor.name for tensor in graph.initializer}]
    if len(given) != len(inputs) or len(graph.output) != len(outputs):
        raise SourceError(f"the export has {len(given)} inputs and {len(graph.output)} outputs")
    new = dict(zip([value.name for value in given], inputs, strict=True))
    new |= dict(zip([value.name for value in graph.output], outputs, strict=True))
    taken = {name for node in graph.node for name in node.output} - set(new)
    for name in taken & set(new.values()):
        new[name] = f"{name} inside"
    for node in graph.node:
        for names in (node.input, node.output):
            for place, name in enumerate(names):
                names[place] = new.get(name, name)
    for value in (*graph.input, *graph.output, *graph.value_info):
        value.name = new.get(value.name, value.name)


def _to_openvino(program: Any, inputs: list[str], outputs: list[str], file: Path) -> int:
    return write_openvino(converted_by_openvino(program), inputs, outputs, file)


def converted_by_openvino(program: Any) -> Any:
    """Without its telemetry, which forks this process many times and reaches for the network. It is off in CI."""
    import openvino

    before = os.environ.get("CI")
    os.environ["CI"] = "true"
    try:
        return openvino.convert_model(program)
    finally:
        if before is None:
            del os.environ["CI"]
        else:
            os.environ["CI"] = before


def write_openvino(model: Any, inputs: list[str], outputs: list[str], file: Path) -> int:
    """With the names of the source, in the order of the conversion."""
    import openvino

    if len(model.inputs) != len(inputs) or len(model.outputs) != len(outputs):
        raise SourceError(f"the conversion has {len(model.inputs)} inputs and {len(model.outputs)} outputs")
    for port, name in zip((*model.inputs, *model.outputs), (*inputs, *outputs), strict=True):
        port.get_tensor().set_names({name})
    openvino.save_model(model, file, compress_to_fp16=False)
    return file.stat().st_size + file.with_suffix(".bin").stat().st_size


def _read_from_onnx(folder: Path) -> tuple[dict[str, Bounds], dict[str, int], CountedWork | None]:
    """Read what only the graph shows: the ranges of inputs, which of their sizes is the batch, and a call's work."""
    file = folder / ONNX_FILE
    if not file.is_file():
        return {}, {}, None
    import onnx

    model = onnx.load_model(file)
    return integer_bounds(model), batch_axes(model, input_values(model)), counted_work(model)


def float_tensors(module: Any) -> dict[str, Any]:
    """Parameters and buffers of float32, shared ones once."""
    import torch

    found = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    state = set(module.state_dict())
    return {name: each for name, each in found.items() if name in state and each.dtype == torch.float32}


def _tensor(
    name: str, example: Any, ranges: Mapping[str, Bounds], source: Source, fills: Mapping[str, Fill] | None
) -> Tensor:
    dtype = _dtype(name, example)
    if fills is not None:
        return Tensor(name, tuple(example.shape), fills[name], dtype)
    largest = int(example.max()) if example.numel() and not dtype.startswith("float") and dtype != "bool" else None
    return Tensor(name, tuple(example.shape), fill_of(name, dtype, ranges.get(name), source, largest), dtype)


def _dtype(name: str, tensor: Any) -> Dtype:
    return known_dtype(name, str(tensor.dtype).removeprefix("torch."))


def _in_float32(source: TorchSource, outputs: list[str]) -> Forward:
    import torch
    from torch.func import functional_call

    def forward(weights: Arrays, arrays: Arrays) -> dict[str, np.ndarray]:
        held = {name: torch.from_numpy(np.array(weights[name])) for name in weights}
        given = {name: torch.from_numpy(np.array(arrays[name])) for name in source.example}
        with torch.no_grad():
            found = flattened(functional_call(source.module, held, source.places(given), source.named(given)))
        return {name: each.numpy() for name, (_, each) in zip(outputs, found, strict=True)}

    return forward


def in_double() -> Any:
    """Compute in float64: ``double()`` leaves casts to float32 in the code, so types change when operations run."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    narrow = (torch.float32, torch.float16, torch.bfloat16)

    def widened(value: Any) -> Any:
        return torch.float64 if isinstance(value, torch.dtype) and value in narrow else value

    class InDouble(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is torch.ops.aten._assert_tensor_metadata.default:
                return None
            result = func(*map(widened, args), **{key: widened(each) for key, each in (kwargs or {}).items()})
            return result.double() if isinstance(result, torch.Tensor) and result.dtype in narrow else result

    return InDouble()


def _in_double(source: TorchSource, outputs: list[str]) -> Forward:
    import torch
    from torch.func import functional_call

    double = copy.deepcopy(source.module).double()

    def forward(weights: Arrays, arrays: Arrays) -> dict[str, np.ndarray]:
        held = {name: torch.from_numpy(np.array(weights[name])) for name in weights}
        given = {name: torch.from_numpy(np.array(arrays[name])) for name in source.example}
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            with torch.no_grad(), in_double():
                found = flattened(functional_call(double, held, source.places(given), source.named(given)))
        finally:
            torch.set_default_dtype(before)
        return {name: each.numpy() for name, (_, each) in zip(outputs, found, strict=True)}

    return forward
