"""The exports of a PyTorch module: an ExportedProgram, and from that ONNX and OpenVINO's own form.

The program is exported once, when the model is opened. What fails there is the outcome of the frameworks that need
it, and no one else's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fairlap.errors import cause_of
from fairlap.machine.software import how_to_install
from fairlap.models.onnx_import.nodes import PADDING_KEY
from fairlap.models.sources.contract import Route, SourceError
from fairlap.models.sources.imported import IMPORTED
from fairlap.models.sources.onnx_graphs.arrays_beside import arrays_beside, put_arrays_beside
from fairlap.models.sources.onnx_graphs.batch_axes import batch_axes
from fairlap.models.sources.onnx_graphs.binding import input_values
from fairlap.models.sources.onnx_graphs.ranges import integer_bounds
from fairlap.models.sources.onnx_graphs.work import CountedWork, counted_work
from fairlap.models.sources.python_models.torch_source import TorchSource, float_tensors, wrapped
from fairlap.models.sources.sizes import Bounds

ONNX_FILE, OPENVINO_FILE = "exported.onnx", "exported.xml"
NAMES_FILE = "weight-names.json"  # of a model that is trained
_HELD = "module."  # what the export puts before the names of what ``wrapped`` holds
EXPORTED = "exported to ONNX by PyTorch"
_OPENVINO = "from the ExportedProgram by OpenVINO"
PLAINER = "from a plainer form of its attention or experts"


def exported(found: TorchSource, outputs: list[str], folder: Path, *, learns: bool) -> dict[str, Route]:
    """Export the module, or where ONNX cannot be written of it, its plainer form for what has no route yet.

    Where it ``learns``, nothing that folds its weights is done, and their names are kept.
    """
    routes = _exported(found, outputs, folder, learns=learns)
    if found.plainer is None or not routes.get("onnx", routes["jax"]).why_not:
        return routes
    try:
        plainer = found.plainer()
    except SourceError:  # a package that has no other form
        return routes
    has_openvino = not learns and not routes["openvino"].why_not
    again = _exported(plainer, outputs, folder, learns=learns, to_openvino=not has_openvino)
    known = {name: route for name, route in again.items() if routes[name].why_not and not route.why_not}
    return routes | {
        name: msgspec.structs.replace(each, name=f"{each.name}, {PLAINER}") for name, each in known.items()
    }


def _exported(
    found: TorchSource, outputs: list[str], folder: Path, *, learns: bool, to_openvino: bool = True
) -> dict[str, Route]:
    import torch

    began_s = time.monotonic()
    try:
        program = torch.export.export(wrapped(found), (), dict(found.example), strict=False)
    except Exception as error:  # of torch.export and of the module itself
        none = Route(why_not=f"PyTorch cannot export it: {cause_of(error)}")
        return dict.fromkeys(("onnx", "openvino", "jax", "tensorflow"), none)
    exported_s = time.monotonic() - began_s
    inputs = list(found.example)
    onnx = converted_route(
        lambda: write_onnx(program, inputs, outputs, folder / ONNX_FILE, fold=not learns), exported_s
    )
    if learns:
        imported = onnx if onnx.why_not else _importable(onnx, folder)
        if not imported.why_not and (missing := write_weight_names(found.module, folder)):
            imported = Route(why_not=f"PyTorch's export of it has no array {missing}")
        route = named_route(imported, f"{IMPORTED}, {EXPORTED}")
        return dict.fromkeys(("jax", "tensorflow"), msgspec.structs.replace(route, holds_weights=True))
    openvino = Route(why_not="it is not converted again")
    if to_openvino:
        openvino = converted_route(lambda: _to_openvino(program, inputs, outputs, folder / OPENVINO_FILE), exported_s)
    routes = {"onnx": named_route(onnx, EXPORTED), "openvino": named_route(openvino, _OPENVINO)}
    if openvino.why_not and not onnx.why_not:
        routes["openvino"] = routes["onnx"]
    imported = onnx if onnx.why_not else _importable(onnx, folder)
    return routes | dict.fromkeys(("jax", "tensorflow"), named_route(imported, f"{IMPORTED}, {EXPORTED}"))


def converted_route(write: Callable[[], int], before_s: float) -> Route:
    began_s = time.monotonic()
    try:
        size = write()
    except ModuleNotFoundError as error:
        return Route(why_not=f"the conversion needs the package {error.name}: {how_to_install(error.name or '')}")
    except Exception as error:  # every converter raises its own errors
        return Route(why_not=cause_of(error))
    return Route("converted", conversion_s=before_s + time.monotonic() - began_s, conversion_bytes=size)


def named_route(route: Route, name: str) -> Route:
    if route.why_not:
        return Route(why_not=route.why_not)
    return Route(name, "", route.conversion_s, route.conversion_bytes, holds_weights=False)


def _importable(onnx: Route, folder: Path) -> Route:
    from fairlap.errors import FairlapError
    from fairlap.models.sources.onnx_graphs.imported_reference import imported_reference

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
        _mark_padding(found.model, program)
    put_arrays_beside(found.model, file)
    model = found.model_proto
    _rename(model, inputs, outputs)
    file.write_bytes(model.SerializeToString())
    onnx.checker.check_model(file)
    return sum(each.stat().st_size for each in (file, arrays_beside(file)) if each.is_file())


def _simplify(model: Any) -> None:
    """Fold what depends on no weight, such as sizes and sequences of parts; the weights stay as the module has them."""
    from onnxscript.optimizer import fold_constants

    def should_fold(node: Any) -> bool | None:
        weights = (each for each in node.inputs if each is not None and each.is_initializer())
        return False if any(each.dtype is not None and each.dtype.is_floating_point() for each in weights) else None

    fold_constants(model, should_fold=should_fold)


def _mark_padding(model: Any, program: Any) -> None:
    """Write which row an embedding's ``padding_idx`` keeps from its gradient; ONNX cannot express that."""

    def padding_of(node: Any) -> int:
        """Of a node of the program; -1 where it has none."""
        if node is None or not str(node.target).startswith("aten.embedding."):
            return -1
        found = node.args[2] if len(node.args) > 2 else node.kwargs.get("padding_idx", -1)
        return found if isinstance(found, int) else -1

    wanted = [node for part in program.graph_module.modules() for node in _needed_in(part) if padding_of(node) >= 0]
    marked = 0
    for node in model.graph.all_nodes():
        padding = padding_of(node.meta.get("node"))
        if padding >= 0 and node.op_type == "Gather":
            node.metadata_props[PADDING_KEY] = str(padding)
            marked += 1
    if marked < len(wanted):
        raise SourceError(f"padding_idx of {len(wanted) - marked} of its embeddings is lost in the export to ONNX")


def _needed_in(module: Any) -> set[Any]:
    """Find the nodes of a program that its outputs depend on; others are not exported."""
    needed: set[Any] = set()
    for node in reversed(getattr(getattr(module, "graph", None), "nodes", ())):
        if node.op == "output" or node in needed:
            needed.update(node.all_input_nodes)
    return needed


def write_weight_names(module: Any, folder: Path) -> str:
    """Write the module's own name of each weight, by that of the export, which adds where the module was held.

    A tensor that the module has under several names has the first one; a buffer that it does not save is a constant.
    Returns one that is missing in the export.
    """
    from fairlap.models.onnx_import.files.load import load_graph

    first = {id(each): name for name, each in float_tensors(module).items()}
    held = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    names = {}
    for name, array in load_graph(folder / ONNX_FILE).weights.items():
        own = held.get(name.removeprefix(_HELD))
        if own is not None and id(own) in first and np.array_equal(own.detach().numpy(), array):
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


def read_from_onnx(folder: Path) -> tuple[dict[str, Bounds], dict[str, int], CountedWork | None]:
    """Read what only the graph shows: the ranges of inputs, which of their sizes is the batch, and a call's work."""
    file = folder / ONNX_FILE
    if not file.is_file():
        return {}, {}, None
    import onnx

    model = onnx.load_model(file, load_external_data=False)
    return integer_bounds(model), batch_axes(model, input_values(model)), counted_work(model)
