"""Arrays as PyTorch takes them, by a model's arguments or from a pipeline, and its tensors as arrays again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import numpy.typing as npt

from fairlap.frameworks.adapter_parts.answers import Answers, as_float32, named_gradients, named_outputs, trained_names
from fairlap.frameworks.adapter_parts.ranks.torch_ranks import whole
from fairlap.frameworks.contract import Fed
from fairlap.frameworks.contract_parts.compilation import Types
from fairlap.models.arrays import Arrays
from fairlap.models.spec import LABELS, Loss
from fairlap.models.workload import Workload
from fairlap.request.work import Precision

TYPES: Mapping[Precision, str] = {"fp16": "float16", "bf16": "bfloat16"}


def tensors_of(work: Workload, device: str, arrays: Arrays, types: Types) -> dict[str, Any]:
    """On the device, in the work's precision, or in those ``types``; labels stay as they are in every precision."""
    import torch

    tensors = {name: _tensor(array).to(device) for name, array in arrays.items()}
    if work.precision in TYPES:
        narrow = getattr(torch, TYPES[work.precision])
        tensors = {
            name: each.to(narrow) if each.is_floating_point() and name != LABELS else each
            for name, each in tensors.items()
        }
    return {name: each.to(getattr(torch, types[name])) if name in types else each for name, each in tensors.items()}


def _tensor(array: npt.NDArray[Any]) -> Any:
    """Shares the array's memory."""
    import torch

    if array.flags.writeable:  # of a padded call, which takes place in it
        return torch.from_numpy(array)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the array is read-only, and nothing writes to it
        return torch.from_numpy(array)


def labels_on(work: Workload, device: str) -> Any:
    return None if work.labels is None else as_labels(_tensor(work.labels), work.spec.loss).to(device)


def as_labels(tensor: Any, kind: Loss) -> Any:
    """Classes as PyTorch takes them: int64, in one row unless the loss takes rows of them; values as they are."""
    if tensor.is_floating_point():
        return tensor
    return tensor.long() if kind in ("own", "ctc") else tensor.reshape(-1).long()


def argument_names(model: Any, work: Workload) -> list[str]:
    """List the inputs' names in the order of the model's arguments; none where the model does not name them all."""
    places = list(signature(model.forward).parameters)
    return places if sorted(places) == sorted(work.inputs) else []


def runner(forward: Callable[..., Any], places: list[str]) -> Callable[[Mapping[str, Any]], Any]:
    if places:
        return lambda tensors: forward(*[tensors[name] for name in places])
    return lambda tensors: forward(**tensors)


def fed_to(run: Callable[[Mapping[str, Any]], Any], device: str) -> Fed:
    if device == "cpu":
        return Fed(_lent_tensor, run)
    from torch.utils.dlpack import from_dlpack  # it names the current stream, which waits for the copy

    return Fed(from_dlpack, run, device, lambda tensor: tensor.cpu().numpy())


def _lent_tensor(batch: Any) -> Any:
    """From the capsule, which takes half the time of a conversion from the batch."""
    from torch.utils.dlpack import from_dlpack

    return from_dlpack(batch.__dlpack__())


def outputs_of(work: Workload, result: Any) -> Answers:
    return named_outputs(work.spec, [each.float().cpu().numpy() for each in result])


def gradients_of(work: Workload, result: Any) -> Answers:
    loss, gradients = result
    by_name = zip(trained_names(work.spec), gradients, strict=True)
    return named_gradients(loss.detach().cpu(), {name: each.float().cpu().numpy() for name, each in by_name})


def weights_of(work: Workload, model: Any) -> Answers:
    held = model.state_dict()
    return {weight.name: as_float32(whole(held[weight.name]).float().cpu().numpy()) for weight in work.spec.weights}
