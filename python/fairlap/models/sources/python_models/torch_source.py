"""A PyTorch module with the example that it is called on, and the tensors that it holds and returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fairlap.models.sources.contract import Route
from fairlap.models.spec import Fill


@dataclass(frozen=True)
class TorchSource:
    """``module`` takes the example's inputs and returns tensors in any nesting."""

    module: Any
    example: Mapping[str, Any]  # tensors, in the order of the arguments
    native: Route
    by_place: tuple[str, ...] = ()  # inputs that the module takes by place only
    fills: Mapping[str, Fill] | None = None  # what is drawn, where the example has shapes and types alone
    plainer: Callable[[], TorchSource] | None = None  # the same in other code, for exporters that fail on this one

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


def float_tensors(module: Any) -> dict[str, Any]:
    """Parameters and buffers of float32, shared ones once."""
    import torch

    found = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    state = set(module.state_dict())
    return {name: each for name, each in found.items() if name in state and each.dtype == torch.float32}
