"""Gradients of a PyTorch module by ``torch.autograd``, of the user's own code, in float64 or float32."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from fairlap.errors import FairlapError, described
from fairlap.models.arrays import Arrays, Labels
from fairlap.models.sources.contract import Learner, SourceError
from fairlap.models.sources.learning.loss import kind_of_loss, own_loss
from fairlap.models.sources.python_models.double_modules import in_double
from fairlap.models.sources.python_models.torch_source import TorchSource, flattened, float_tensors, returns_tensors
from fairlap.models.spec import Loss
from fairlap.models.training.reference import Batch, Slopes
from fairlap.request.fields.loss import CODE
from fairlap.request.fields.source import Source

Own = Callable[[Any, Any], Any]


def learner_of_module(found: TorchSource, source: Source, kind: Loss) -> Learner:
    parameters = dict(found.module.named_parameters())
    held = float_tensors(found.module)
    trained = tuple(name for name in held if name in parameters and parameters[name].requires_grad)
    slopes = _SlopesOfModule(found, kind, checked_loss(source), trained)
    how = "torch.autograd on the PyTorch module in float64"
    why = _why_not_train(found.module)
    return Learner(trained, slopes, slopes.outputs, how, why, padding=_padding(found.module, held))


def _padding(module: Any, held: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Find the rows to which PyTorch's embeddings pass no gradient, by the weight's first name."""
    import torch

    names = {id(each): name for name, each in held.items()}
    found: dict[str, tuple[int, ...]] = {}
    for each in module.modules():
        if isinstance(each, torch.nn.Embedding) and each.padding_idx is not None and id(each.weight) in names:
            name = names[id(each.weight)]
            found[name] = (*found.get(name, ()), each.padding_idx)
    return found


def _why_not_train(module: Any) -> str:
    for name, each in module.named_modules():
        if getattr(each, "track_running_stats", False) and getattr(each, "momentum", 0.0) is None:
            return f"{name} averages over all batches so far, since its momentum is None; give it one"
    return ""


class _SlopesOfModule:
    def __init__(self, found: TorchSource, kind: Loss, own: Own | None, trained: tuple[str, ...]) -> None:
        self._found, self._kind, self._own, self._trained = found, kind, own, trained
        self._modules: dict[bool, Any] = {False: found.module, True: copy.deepcopy(found.module).double()}

    def __call__(self, weights: Arrays, batch: Batch, training: bool) -> Slopes:
        import torch

        wide = any(array.dtype == np.float64 for array in weights.values())
        held = _tensors(weights)
        for name in self._trained:
            held[name].requires_grad_(True)
        labels = None if batch.labels is None else torch.tensor(np.array(batch.labels))
        if labels is not None:
            labels = as_contestants_have_them(labels, wide=wide)
        with self._called(wide=wide, training=training) as module:
            loss = loss_of_returned(self._returned(module, held, batch.inputs), labels, self._kind, self._own)
            gradients = gradients_of(loss, [held[name] for name in self._trained])
        by_name = zip(self._trained, gradients, strict=True)
        return Slopes(
            float(loss.detach()),
            {name: (torch.zeros_like(held[name]) if each is None else each).numpy() for name, each in by_name},
            {name: each.detach().numpy() for name, each in held.items() if name not in self._trained},
        )

    def outputs(self, weights: Arrays, inputs: Arrays) -> dict[str, Any]:
        import torch

        with torch.no_grad(), self._called(wide=True, training=False) as module:
            found = flattened(self._returned(module, _tensors(weights), inputs))
        return {name or "output": each.numpy() for name, each in found}

    def _returned(self, module: Any, held: Mapping[str, Any], inputs: Mapping[str, Any]) -> Any:
        from torch.func import functional_call

        given = _tensors({name: inputs[name] for name in self._found.example})
        return functional_call(module, held, self._found.places(given), self._found.named(given))

    @contextmanager
    def _called(self, *, wide: bool, training: bool) -> Iterator[Any]:
        """Give the module in the type, with which everything is computed here, and as it is in training or not."""
        module = self._modules[wide].train(training)
        try:
            with in_type(wide=wide):
                yield module
        finally:
            module.eval()


@contextmanager
def in_type(*, wide: bool) -> Iterator[None]:
    """Compute in float64 or float32, whatever the user's code casts to."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64 if wide else torch.float32)
    try:
        with in_double() if wide else nullcontext():
            yield
    finally:
        torch.set_default_dtype(before)


def _tensors(arrays: Mapping[str, Any]) -> dict[str, Any]:
    import torch

    return {name: torch.tensor(np.array(array)) for name, array in arrays.items()}


def as_contestants_have_them(labels: Any, *, wide: bool) -> Any:
    if not labels.is_floating_point():
        return labels.long()
    return labels.double() if wide else labels


def require_loss_on(found: TorchSource, returned: Any, labels: Labels | None, source: Source) -> None:
    """Call the loss once on what the module returned for its example, and refuse what has no gradient.

    ``returned`` was computed with gradients, in the precision of the module.
    """
    import torch

    own = checked_loss(source)
    given = None if labels is None else as_contestants_have_them(torch.tensor(np.array(labels)), wide=False)
    try:
        loss = loss_of_returned(returned, given, kind_of_loss(source.loss), own)
    except FairlapError:
        raise
    except Exception as error:  # of the user's function
        raise SourceError(f"--loss {source.loss} raised {described(error)}", code=CODE) from None
    if any(each.requires_grad for each in found.module.parameters()):
        _require_gradient(loss)


def checked_loss(source: Source) -> Own | None:
    """Find the user's loss, which is refused for what it returns before PyTorch refuses it in words of its own."""
    own = own_loss(source)
    if own is None:
        return None

    def loss(returned: Any, labels: Any) -> Any:
        found = own(returned, labels)
        if why := _why_no_loss(found):
            raise SourceError(f"--loss {source.loss} returned {why}", code=CODE)
        return found

    return loss


def _why_no_loss(found: Any) -> str:
    import torch

    if not isinstance(found, torch.Tensor):
        what = "nothing" if found is None else f"a {type(found).__name__}"
        return f"{what}; return a tensor of one number, such as the mean over the batch"
    if found.numel() != 1:
        return f"a tensor of the shape {list(found.shape)}; return one number, such as its mean"
    if not found.is_floating_point():
        return f"a tensor of {str(found.dtype).removeprefix('torch.')}, which has no gradient; return a float tensor"
    return ""


def _require_gradient(loss: Any) -> None:
    if not loss.requires_grad:
        raise SourceError(
            "no gradient reaches any weight from the loss; look for detach(), no_grad(), .data and .item() in both "
            "the model and the loss",
            code=CODE,
        )


def gradients_of(loss: Any, weights: list[Any]) -> Any:
    """None for a weight that the loss does not depend on."""
    import torch

    _require_gradient(loss)
    return torch.autograd.grad(loss, weights, allow_unused=True)


def loss_of_returned(returned: Any, labels: Any, kind: Loss, own: Own | None) -> Any:
    """Compute the loss of what a module returned, in the type that it has."""
    if own is not None:
        return own(returned, labels)
    first = flattened(returned)[0][1]
    return loss_of_first(first, labels, kind)


def as_returned(outputs: Sequence[Any]) -> Any:
    """Give a loss of the outputs of an ONNX file what a module would return: a tensor, or several in a tuple."""
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def loss_of_first(first: Any, labels: Any, kind: Loss) -> Any:
    """By the formulas, without PyTorch's own losses, which contestants call."""
    if kind == "square_error":
        return (first - labels.to(first.dtype)).square().mean()
    shares = first - first.logsumexp(dim=-1, keepdim=True)
    return -shares.gather(-1, labels.long().unsqueeze(-1)).mean()


def trainable(found: TorchSource, source: Source) -> Any:
    """Make the module that contestants train: it takes inputs by place, and has weights by the module's own names."""
    import torch

    own, names = own_loss(source), list(found.example)

    class Trainable(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = found.module

        def state_dict(self, *_: Any, **__: Any) -> dict[str, Any]:
            state: dict[str, Any] = self.module.state_dict()
            return state

        def named_parameters(self, *arguments: Any, **named: Any) -> Any:
            return self.module.named_parameters(*arguments, **named)

        def returned(self, *arguments: Any, **named: Any) -> Any:
            given = {**dict(zip(names, arguments, strict=False)), **named}
            return self.module(*found.places(given), **found.named(given))

        def forward(self, *arguments: Any, **named: Any) -> tuple[Any, ...]:
            return returns_tensors(self.returned(*arguments, **named))

        def own_loss(self, labels: Any, *arguments: Any, **named: Any) -> Any:
            assert own is not None
            return own(self.returned(*arguments, **named), labels)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    Trainable.forward.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, kind) for name in ("self", *names)]
    )
    return Trainable()
