"""A PyTorch module computed in float64, and in float32 as it is, with weights that are given for each call."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlap.machine.lack_of_memory import is_lack_of_memory
from fairlap.models.arrays import Arrays
from fairlap.models.sources.onnx_graphs.binding import require_memory
from fairlap.models.sources.python_models.torch_source import float_tensors

if TYPE_CHECKING:
    from fairlap.models.sources.python_models.wide_weights import WideWeights

Answers = dict[str, np.ndarray]

_SMALL_BYTES = 2**20  # weights that are copied, as buffers are, into which a module may write
_COPIES_OF_WHOLE = 2.0  # of the float32 weights: a copy of the module in float64


def in_double() -> Any:
    """Compute in float64: ``double()`` leaves casts to float32 in the code, so types change when operations run."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    narrow = (torch.float32, torch.float16, torch.bfloat16)
    grouped = getattr(torch.ops.aten, "_grouped_mm", None)  # of PyTorch 2.8 and later

    def widened(value: Any) -> Any:
        return torch.float64 if isinstance(value, torch.dtype) and value in narrow else value

    class InDouble(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is torch.ops.aten._assert_tensor_metadata.default:
                return None
            if grouped is not None and func is grouped.default:
                return grouped_products(*args, **(kwargs or {}))
            result = func(*map(widened, args), **{key: widened(each) for key, each in (kwargs or {}).items()})
            return result.double() if isinstance(result, torch.Tensor) and result.dtype in narrow else result

    return InDouble()


def grouped_products(left: Any, right: Any, ends: Any = None, bias: Any = None, _dtype: Any = None) -> Any:
    """Multiply group by group, in any type; ``torch.nn.functional.grouped_mm`` has no float64.

    ``ends`` is where each group ends in the axis that the groups share, the rows of experts' tokens for example. Rows
    after the last one are 0.
    """
    import torch

    if ends is None:
        return left @ right if bias is None else left @ right + bias
    bounds = ends.tolist()
    groups = list(enumerate(zip([0, *bounds[:-1]], bounds, strict=True)))
    if left.dim() == right.dim() == 2:
        found = torch.stack([left[:, first:last] @ right[first:last] for _, (first, last) in groups])
    elif left.dim() == 2:
        parts = [left[first:last] @ right[number] for number, (first, last) in groups]
        found = torch.cat([*parts, left.new_zeros(len(left) - bounds[-1], right.shape[-1])])
    else:
        found = torch.cat([left[number] @ right[:, first:last] for number, (first, last) in groups], dim=1)
    return found if bias is None else found + bias


@contextmanager
def computing_in_double() -> Iterator[None]:
    """Compute without gradients, and in float64 what code makes or casts to another type."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad(), in_double():
            yield
    finally:
        torch.set_default_dtype(before)


class DoubleModule:
    """A copy of a module in float64, which holds each weight only while an operator uses it.

    Where the module's code does not take such weights, the copy holds all of them: code that writes into a weight, or
    reaches for its numbers without PyTorch.
    """

    def __init__(self, module: Any, name: str) -> None:
        self._module, self._name = module, name
        self._in_turn: _InTurn | None = None
        self._whole: _Whole | None = None
        with suppress(Exception):  # of the module's own code, when it is copied
            self._in_turn = _InTurn(module)

    @property
    def is_whole(self) -> bool:
        return self._in_turn is None

    def __call__(self, weights: Arrays, call: Callable[[Any], Mapping[str, Any]]) -> Answers:
        """Give the tensors that ``call`` returns of the module it is given, as arrays."""
        if self._in_turn is not None:
            try:
                return self._in_turn(weights, call)
            except Exception as error:
                if is_lack_of_memory(error):
                    raise
                self._in_turn = None
        if self._whole is None:
            of_module = sum(each.nbytes for each in float_tensors(self._module).values())
            require_memory(of_module, self._name, copies=_COPIES_OF_WHOLE)
            self._whole = _Whole(self._module)
        return self._whole(weights, call)


class _InTurn:
    """Parameters without numbers; buffers are copied."""

    def __init__(self, module: Any) -> None:
        import torch

        from fairlap.models.sources.python_models.wide_weights import WideWeight, WideWeights, as_parameter

        self._wide: WideWeights = WideWeights()
        held = float_tensors(module)  # as long as their ids are used
        wide = {
            id(each): as_parameter(self._wide, name, each)
            for name, each in held.items()
            if type(each) is torch.nn.Parameter
        }
        self._double = copy.deepcopy(module, wide).double()
        self._copied = {name: each for name, each in _named(self._double).items() if not isinstance(each, WideWeight)}

    def __call__(self, weights: Arrays, call: Callable[[Any], Mapping[str, Any]]) -> Answers:
        from fairlap.models.sources.python_models.wide_weights import RefusesWrites, WideWeight

        _copy_into(self._copied, weights)
        with self._wide.of(weights), computing_in_double(), RefusesWrites(self._wide.holds):
            found = {
                name: each.whole() if isinstance(each, WideWeight) else each
                for name, each in call(self._double).items()
            }
        return {name: each.detach().numpy() for name, each in found.items()}


class _Whole:
    """The copy gets the weights one after the other, so that they are there in float64 once."""

    def __init__(self, module: Any) -> None:
        self._double = copy.deepcopy(module).double()
        self._copied = _named(self._double)

    def __call__(self, weights: Arrays, call: Callable[[Any], Mapping[str, Any]]) -> Answers:
        _copy_into(self._copied, weights)
        with computing_in_double():
            found = call(self._double)
        return {name: each.detach().numpy() for name, each in found.items()}


def _named(module: Any) -> dict[str, Any]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _copy_into(held: Mapping[str, Any], weights: Arrays) -> None:
    import torch

    with torch.no_grad():
        for name in weights:
            if name in held:
                held[name].copy_(torch.from_numpy(np.array(weights[name])))


def called_in_float32(weights: Arrays, call: Callable[[Any], Mapping[str, Any]]) -> Answers:
    """Give the tensors that ``call`` returns of the weights it is given, as arrays.

    Large weights are not copied, unless the module writes into them.
    """
    import torch

    from fairlap.models.sources.python_models.wide_weights import RefusesWrites, lies_in, storages_of

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that they cannot be written to
        held = {
            name: torch.from_numpy(array if array.nbytes > _SMALL_BYTES else np.array(array))
            for name, array in weights.items()
        }
    shared = storages_of(each for each in held.values() if each.nbytes > _SMALL_BYTES)
    try:
        with torch.no_grad(), RefusesWrites(lies_in(shared)):
            found = call(held)
    except Exception as error:
        if not shared or is_lack_of_memory(error):
            raise
        del held
        with torch.no_grad():
            found = call({name: torch.from_numpy(np.array(weights[name])) for name in weights})
    return {name: each.detach().numpy() for name, each in found.items()}
