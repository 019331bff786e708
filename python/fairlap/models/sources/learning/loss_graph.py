"""A user's PyTorch loss as an ONNX graph of the model's outputs and labels, for frameworks that get it converted.

PyTorch exports what the loss computes, but not where it stops gradients or has its own backward pass. So the graph is
used only if its value and its gradients are those of the loss itself, in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fairlap.errors import FairlapError, cause_of
from fairlap.models.onnx_import.build import build
from fairlap.models.onnx_import.files.load import load_graph
from fairlap.models.sources.contract import Route
from fairlap.models.sources.imported import LossOfOutputs
from fairlap.models.sources.learning.loss import is_code
from fairlap.models.sources.learning.proof import given_labels
from fairlap.models.sources.learning.torch_learner import (
    Own,
    as_contestants_have_them,
    as_returned,
    checked_loss,
    in_type,
)
from fairlap.models.sources.python_models.torch_exports import write_onnx
from fairlap.models.sources.python_models.torch_source import flattened
from fairlap.models.spec import LABELS
from fairlap.request.fields.source import Source

_FILE = "loss.onnx"
_LOSS = "loss"
_CONVERTED = ("jax", "tensorflow")
_AGREES = 1e-6  # relative: an export keeps constants in float32, and another loss is off by more


def with_own_loss(routes: Mapping[str, Route], source: Source, returned: Any, folder: Path) -> dict[str, Route]:
    """Export the loss of what the model returned; routes on which it cannot go along have no gradients."""
    converted = [name for name in _CONVERTED if name in routes and not routes[name].why_not]
    if not is_code(source.loss) or not converted:
        return dict(routes)
    why = _why_not_exported(source, returned, folder / _FILE)
    why = f"the loss {source.loss} cannot go along: {why}" if why else ""
    return {**routes, **{name: msgspec.structs.replace(routes[name], no_gradients=why) for name in converted}}


def as_tensors(outputs: Sequence[Any]) -> Any:
    """Make of an ONNX file's outputs what its loss gets."""
    import torch

    return as_returned([torch.from_numpy(each) for each in outputs])


def loss_on(framework: str, source: Source, folder: Path) -> LossOfOutputs:
    """Make the loss a function of a framework: PyTorch calls the user's own of an ONNX file's outputs."""
    if framework != "torch":
        return _LossGraph(folder / _FILE, framework)
    own = checked_loss(source)
    assert own is not None
    return lambda outputs, labels: own(as_returned(outputs), labels)


def own_loss_on(framework: str, source: Source, folder: Path) -> Callable[[], LossOfOutputs] | None:
    """Make the loss for a model that was converted, when it is built; None for a loss with a name."""
    return partial(loss_on, framework, source, folder) if is_code(source.loss) else None


class _LossGraph:
    def __init__(self, file: Path, framework: Any, floats: str = "float32") -> None:
        graph = load_graph(file)
        self._model = build(graph, framework, floats=floats)
        self._held = self._model.prepare(graph.weights)

    def __call__(self, outputs: Sequence[Any], labels: Any) -> Any:
        """Take labels in the types of any framework, which has its own for whole numbers."""
        given = outputs if labels is None else (*outputs, labels)
        cast = self._model.library.cast
        inputs = {
            tensor.name: cast(each, tensor.dtype) for tensor, each in zip(self._model.graph.inputs, given, strict=True)
        }
        return self._model(self._held, inputs)[_LOSS]


def _why_not_exported(source: Source, returned: Any, file: Path) -> str:
    """Write the loss, or report why it cannot be computed elsewhere."""
    try:
        import torch

        own, array = checked_loss(source), given_labels(source)
        assert own is not None
        labels = None if array is None else as_contestants_have_them(torch.tensor(np.array(array)), wide=False)
        of_tensors = _OfTensors.of(own, returned)
        tensors = [each.detach().clone() for _, each in flattened(returned)]
        _export(of_tensors, tensors, labels, file)
        return _why_another(of_tensors, tensors, labels, file)
    except ModuleNotFoundError as error:
        return f"its export needs the package {error.name}; install it"
    except FairlapError as error:
        return str(error)
    except Exception as error:  # of the user's function and of the exporter
        return f"PyTorch cannot export it: {cause_of(error)}"


class _OfTensors:
    """The loss as a function of the tensors that the model returns, which it gets in their own nesting."""

    def __init__(self, own: Own, leaves: Sequence[Any], nesting: Any) -> None:
        self._own, self._leaves, self._nesting = own, leaves, nesting

    @classmethod
    def of(cls, own: Own, returned: Any) -> _OfTensors:
        from torch.utils._pytree import tree_flatten

        leaves, nesting = tree_flatten(returned)
        found = cls(own, leaves, nesting)
        if [id(each) for each in leaves if found.is_tensor(each)] != [id(each) for _, each in flattened(returned)]:
            raise TypeError(f"the model returns a {type(returned).__name__}, which is not taken apart")
        return found

    @staticmethod
    def is_tensor(leaf: Any) -> bool:
        import torch

        return isinstance(leaf, torch.Tensor)

    def __call__(self, tensors: Sequence[Any], labels: Any) -> Any:
        from torch.utils._pytree import tree_unflatten

        rest = iter(tensors)
        leaves = [next(rest) if self.is_tensor(each) else each for each in self._leaves]
        return self._own(tree_unflatten(leaves, self._nesting), labels).reshape(())


def _export(loss: _OfTensors, tensors: Sequence[Any], labels: Any, file: Path) -> None:
    """Decompose it first, since ONNX's own losses know no label smoothing, which PyTorch's exporter then leaves out."""
    import torch

    class Module(torch.nn.Module):
        def forward(self, *given: Any) -> Any:
            return loss(given, None) if labels is None else loss(given[:-1], given[-1])

    given = (*tensors, *(() if labels is None else (labels,)))
    program = torch.export.export(Module(), given, strict=False).run_decompositions()
    names = [*(f"output {number}" for number in range(len(tensors))), *(() if labels is None else (LABELS,))]
    write_onnx(program, names, [_LOSS], file)


def _why_another(loss: _OfTensors, tensors: Sequence[Any], labels: Any, file: Path) -> str:
    """Compare the graph with the loss itself, value and gradients, in float64."""
    import torch

    if labels is not None and labels.is_floating_point():
        labels = labels.double()
    with in_type(wide=True):
        value, slopes = _slopes_of(loss, tensors, labels)
    found, others = _slopes_of(_LossGraph(file, "torch", "float64"), tensors, labels)
    if not torch.isclose(found, value, rtol=_AGREES, atol=_AGREES):
        return f"its export gives {found.item():.7g} where the loss gives {value.item():.7g}"
    if not (others - slopes).norm() <= _AGREES * slopes.norm():
        return "its export has other gradients, as of a loss that detaches something or has its own backward pass"
    return ""


def _slopes_of(loss: LossOfOutputs, tensors: Sequence[Any], labels: Any) -> tuple[Any, Any]:
    """Compute the loss, and in one row its gradients by all outputs of floats."""
    import torch

    held = [each.double().requires_grad_() if each.is_floating_point() else each for each in tensors]
    floats = [each for each in held if each.is_floating_point()]
    value = loss(held, labels)
    found = torch.autograd.grad(value, floats, allow_unused=True)
    pairs = zip(floats, found, strict=True)
    rows = [torch.zeros_like(each).flatten() if slope is None else slope.flatten() for each, slope in pairs]
    return value.detach(), torch.cat(rows)
