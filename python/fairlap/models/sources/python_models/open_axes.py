"""Sizes that an ExportedProgram leaves open, and inputs in other sizes than it was exported with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlap.models.onnx_import.errors import DimensionsUnbound
from fairlap.models.sources.named_axes import asked_sizes, places_in
from fairlap.request.fields.source import Source

Axes = Mapping[str, tuple[Any, ...]]
"""Of inputs: whole numbers, and symbols or expressions of them."""


def resized(program: Any, example: Mapping[str, Any], source: Source) -> dict[str, Any]:
    """Give the example in the sizes of the request, with its own values again and again.

    Axes with the same symbol change together, whichever of them is named.
    """
    asked = asked_sizes(source)
    if not asked:
        return dict(example)
    axes = _axes_of(program, example)
    declared = {name: tuple(int(each) if _is_fixed(each) else None for each in axes[name]) for name in example}
    sizes: dict[Any, int] = {}
    for name, size in asked:
        for tensor, axis in places_in(name, declared, source):
            symbol = axes[tensor][axis]
            if _is_fixed(symbol) or not symbol.is_symbol:
                raise DimensionsUnbound(
                    f"size {axis} of {tensor} was exported as {symbol} in {source.text}, so calls cannot change it; "
                    "export it with dynamic_shapes"
                )
            if sizes.setdefault(symbol, size) != size:
                raise DimensionsUnbound(f"{source.text}: {name} is {size}, and {sizes[symbol]} elsewhere")
            _require_within(program, symbol, size, name, source)
    return {name: _in_sizes(each, axes[name], sizes) for name, each in example.items()}


def _axes_of(program: Any, example: Mapping[str, Any]) -> Axes:
    values = {node.name: node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"}
    return {
        name: tuple(each if isinstance(each, int) else each.node.expr for each in values[place].shape)
        for name, place in zip(example, program.graph_signature.user_inputs, strict=True)
    }


def _is_fixed(axis: Any) -> bool:
    return isinstance(axis, int) or bool(axis.is_number)


def _require_within(program: Any, symbol: Any, size: int, name: str, source: Source) -> None:
    allowed = program.range_constraints.get(symbol)
    if allowed is not None and not allowed.lower <= size <= allowed.upper:
        raise DimensionsUnbound(
            f"{name} may be from {allowed.lower} to {allowed.upper} in {source.text}, as it was exported (got {size})"
        )


def _in_sizes(tensor: Any, axes: tuple[Any, ...], sizes: Mapping[Any, int]) -> Any:
    import torch

    for axis, own in enumerate(axes):
        if not _is_fixed(own) and own.free_symbols & set(sizes):
            size = int(own.subs({**_usual(axes, tensor), **sizes}))
            tensor = tensor.index_select(axis, torch.arange(size) % tensor.shape[axis])
    return tensor


def _usual(axes: tuple[Any, ...], tensor: Any) -> dict[Any, int]:
    """Of symbols that keep the size of the example."""
    return {own: size for own, size in zip(axes, tensor.shape, strict=True) if not _is_fixed(own) and own.is_symbol}
