"""What a server's metadata says of its model, compared with the model that is raced before anything is timed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairlap.frameworks.contract import Unsupported
from fairlap.models.spec import Spec, Tensor

ANY_SIZE = -1


@dataclass(frozen=True)
class ServedTensor:
    name: str
    dtype: str  # NumPy's name of it
    shape: tuple[int, ...] | None  # with ANY_SIZE; None where the rank is open


@dataclass(frozen=True)
class ServedModel:
    inputs: tuple[ServedTensor, ...]
    outputs: tuple[ServedTensor, ...]


@dataclass(frozen=True)
class ServedNames:
    """The server's names, by those of the model."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


def own_names(spec: Spec) -> ServedNames:
    """Of a server without metadata."""
    return ServedNames({each.name: each.name for each in spec.inputs}, {each.name: each.name for each in spec.outputs})


def matching_names(spec: Spec, batch: int, served: ServedModel) -> ServedNames:
    """By name; a single input or output may have another one. Raises Unsupported for another model."""
    inputs = _matched("input", spec.inputs, served.inputs, batch)
    for tensor in spec.inputs:
        found = inputs[tensor.name].dtype
        if found != tensor.dtype:
            raise Unsupported(f"the server's input {inputs[tensor.name].name} is {found}, not {tensor.dtype}")
    if excess := [each.name for each in served.inputs if each not in inputs.values()]:
        raise Unsupported(f"the server's model has an input that {spec.name} has not: {excess[0]}")
    outputs = _matched("output", spec.outputs, served.outputs, batch)
    for tensor in spec.outputs:
        found = outputs[tensor.name].dtype
        # Frameworks' answers are compared as float32, so whole numbers may come as such.
        if np.dtype(tensor.dtype).kind == "f" != np.dtype(found).kind:
            raise Unsupported(f"the server's output {outputs[tensor.name].name} is {found}, not {tensor.dtype}")
    return ServedNames(
        {name: each.name for name, each in inputs.items()}, {name: each.name for name, each in outputs.items()}
    )


def _matched(
    kind: str, tensors: Sequence[Tensor], served: Sequence[ServedTensor], batch: int
) -> dict[str, ServedTensor]:
    by_name = {each.name: each for each in served}
    if len(tensors) == len(served) == 1:
        by_name = {tensors[0].name: served[0]}
    found = {}
    for tensor in tensors:
        if tensor.name not in by_name:
            names = ", ".join(each.name for each in served) or "none"
            raise Unsupported(f"the server's model has no {kind} {tensor.name}; it has {names}")
        offered, needed = by_name[tensor.name], tensor.sized(batch)
        if not _fits(offered.shape, needed):
            raise Unsupported(
                f"the server's {kind} {offered.name} is {_shape_text(offered.shape or ())}, and {tensor.name} is "
                f"{_shape_text(needed)} at batch {batch}"
            )
        found[tensor.name] = offered
    return found


def _fits(offered: tuple[int, ...] | None, needed: tuple[int, ...]) -> bool:
    if offered is None:
        return True
    pairs = zip(offered, needed, strict=False)
    return len(offered) == len(needed) and all(size in (ANY_SIZE, own) for size, own in pairs)


def _shape_text(shape: tuple[int, ...]) -> str:
    return f"[{', '.join('any' if size == ANY_SIZE else str(size) for size in shape)}]"
