"""PyTorch modules as sources: opened, built again for a contestant, and computed in float64 as the reference."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.models.arrays import Arrays
from fairlap.models.sources.contract import Forward, Opened, SourceError, known_dtype
from fairlap.models.sources.imported import Imported, OnnxOnDisk
from fairlap.models.sources.learning.loss import kind_of_loss
from fairlap.models.sources.learning.loss_graph import own_loss_on, with_own_loss
from fairlap.models.sources.learning.proof import labels_of, require_loss
from fairlap.models.sources.learning.torch_learner import require_loss_on
from fairlap.models.sources.onnx_graphs.imported_reference import roundings_inside_export
from fairlap.models.sources.python_models.double_modules import DoubleModule, called_in_float32
from fairlap.models.sources.python_models.torch_exports import (
    ONNX_FILE,
    OPENVINO_FILE,
    exported,
    read_from_onnx,
    weight_names_in,
)
from fairlap.models.sources.python_models.torch_source import TorchSource, flattened, float_tensors, wrapped
from fairlap.models.sources.sizes import Bounds, fill_of, require_known_ranges
from fairlap.models.spec import Constant, Dtype, Fill, Spec, Tensor
from fairlap.request.fields.source import Source


def require_no_sizes(source: Source, example: Mapping[str, Any] | None = None) -> None:
    """Refuse sizes that are asked for, but a batch that the example inputs have."""
    batches = {each.shape[0] for each in (example or {}).values() if len(each.shape)}
    if source.shapes or (source.dims and not source.among_others) or source.batch not in (None, *batches):
        raise SourceError(f"the example inputs decide the sizes of {source.text}; change them there", code="E_SHAPES")


def opened_module(found: TorchSource, source: Source, folder: Path) -> Opened:
    import torch

    if not found.example:
        raise SourceError("the model has no inputs, so nothing could show that it computes", code="E_SOURCE_INPUTS")
    require_known_ranges(list(found.example), source)
    module = found.module
    require_float32(module)
    with torch.set_grad_enabled(bool(source.loss)):
        returned = found(found.example)
        named = flattened(returned)
    if not named:
        raise SourceError("the model returns no tensors; return one, or a tuple, list or dict of them")
    outputs = [name or "output" for name, _ in named]
    if source.loss:
        _require_loss(found, returned, dict(zip(outputs, (each for _, each in named), strict=True)), source)
    routes = {"torch": found.native}
    if not (source.unconverted or source.exported):
        routes |= exported(found, outputs, folder, learns=bool(source.loss))
        if source.loss:
            routes = with_own_loss(routes, source, returned, folder)
    ranges, axes, counted = read_from_onnx(folder)
    inputs = [_tensor(name, each, ranges, source, found.fills) for name, each in found.example.items()]
    return Opened(
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        output_types={name: _dtype(name, each) for name, (_, each) in zip(outputs, named, strict=True)},
        weights={name: tensor.detach().cpu().contiguous().numpy() for name, tensor in float_tensors(module).items()},
        forward=_in_double(found, outputs, source.text),
        routes=routes,
        reference="the PyTorch module in float64",
        in_float32=_in_float32(found, outputs),
        roundings_inside=roundings_inside_export(folder / ONNX_FILE),
        example=None if found.fills else {name: each.detach().cpu().numpy() for name, each in found.example.items()},
        batch_axes=axes,
        multiplications=counted.multiplications if counted else None,
        uncounted=counted.uncounted if counted else (),
    )


def _require_loss(found: TorchSource, returned: Any, outputs: Mapping[str, Any], source: Source) -> None:
    """Before the export, which takes long: that the loss and its labels fit what the module returns."""

    def form(name: str, each: Any) -> Tensor:
        return Tensor(name, tuple(each.shape), Constant(0.0), _dtype(name, each))

    spec = Spec(
        name=source.name,
        task="",
        inputs=tuple(form(*each) for each in found.example.items()),
        outputs=tuple(form(*each) for each in outputs.items()),
        weights=(),
        parameters=0,
        gmacs_per_item=None,
        published="",
        loss=kind_of_loss(source.loss),
    )
    require_loss(source, spec)
    require_loss_on(found, returned, labels_of(source, spec, {"example": 0}).get("example"), source)


def require_float32(module: Any) -> None:
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
    learnt = source if source is not None and source.loss else None
    if framework == "torch":
        return _Native(load, learnt)
    if learnt is not None:
        loss = own_loss_on(framework, learnt, folder)
        return Imported.from_file(folder / ONNX_FILE, framework, weight_names=weight_names_in(folder), loss=loss)
    if framework == "openvino" and (folder / OPENVINO_FILE).is_file():
        return OnnxOnDisk(folder / OPENVINO_FILE)
    if framework in ("onnx", "openvino"):
        return OnnxOnDisk(folder / ONNX_FILE)
    return Imported.from_file(folder / ONNX_FILE, framework, own=True)


def hold_weights(module: Any, weights: Arrays) -> None:
    """Give the module the weights that all contestants have, also where it draws its own."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that they cannot be written to; they are only copied from
        held = {name: torch.from_numpy(array) for name, array in weights.items()}
    missing = set(held) - set(module.state_dict())
    if missing:
        raise SourceError(f"the model has no {min(missing)} any more; does it change between calls?")
    module.load_state_dict(held, strict=False)


class _Native:
    takes_other_sizes = True

    def __init__(self, load: Callable[[], TorchSource], learnt: Source | None) -> None:
        self._load, self._learnt = load, learnt

    def build(self, weights: Arrays) -> Any:
        """With the weights that all contestants have."""
        found = self._load()
        hold_weights(found.module, weights)
        if self._learnt is None:
            return wrapped(found)
        from fairlap.models.sources.learning.torch_learner import trainable

        return trainable(found, self._learnt)


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
    from torch.func import functional_call

    def forward(weights: Arrays, arrays: Arrays) -> Mapping[str, np.ndarray]:
        given = _tensors_of(source, arrays)

        def call(held: Mapping[str, Any]) -> dict[str, Any]:
            found = functional_call(source.module, dict(held), source.places(given), source.named(given))
            return _by_name(found, outputs)

        return called_in_float32(weights, call)

    return forward


def _in_double(source: TorchSource, outputs: list[str], name: str) -> Forward:
    double = DoubleModule(source.module, name)

    def forward(weights: Arrays, arrays: Arrays) -> Mapping[str, np.ndarray]:
        given = _tensors_of(source, arrays)
        return double(weights, lambda module: _by_name(module(*source.places(given), **source.named(given)), outputs))

    return forward


def _tensors_of(source: TorchSource, arrays: Arrays) -> dict[str, Any]:
    import torch

    return {name: torch.from_numpy(np.array(arrays[name])) for name in source.example}


def _by_name(returned: Any, outputs: list[str]) -> dict[str, Any]:
    return {name: each for name, (_, each) in zip(outputs, flattened(returned), strict=True)}
