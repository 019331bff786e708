"""Proof that a user's model can be trained: its loss is a number, its gradients are those of its reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.errors import FairlapError, cause_of
from fairlap.machine.files.regular_file import require_regular
from fairlap.models.array_files.numpy_files import why_not_read
from fairlap.models.arrays import Arrays, Labels
from fairlap.models.checks.losses import loss_of
from fairlap.models.draw import draw_labels
from fairlap.models.sources.contract import Forward, Learner, SourceError
from fairlap.models.sources.given_data.sets import why_unreadable
from fairlap.models.sources.proof import DrawsNumbers, InFloat64, outputs_of
from fairlap.models.spec import BATCH_LABELS, LABELS, Spec
from fairlap.models.training.gradients import are_same
from fairlap.models.training.reference import Batch, Slopes
from fairlap.request.fields.loss import CODE
from fairlap.request.fields.source import Source

_SAME = 1e-9  # relative, of two computations of one loss in float64
_AGREES = 1e-3  # of the usual slope: what a difference quotient of float64 is off by, near kinks too
_STEP = 1e-5  # of a weight's usual size, and smaller ones, which cross fewer kinks
_DIRECTIONS = 3
_MOST_TRIED = 200  # weights that are tried one by one, to name those at fault
_MOST_NAMED = 3


@dataclass(frozen=True)
class Learnt:
    """What the proof found."""

    trained: tuple[str, ...]
    labels: Mapping[str, Labels]  # by set of inputs; none where the loss takes none
    no_training: str = ""
    other_in_training: bool = False  # it computes something else than in inference, as batch normalisation does


def labels_of(source: Source, spec: Spec, seeds: Mapping[str, int]) -> dict[str, Labels]:
    """Read the user's labels for the first set of inputs and shuffle them for the others, or draw all."""
    if not source.labels:
        drawn = {which: draw_labels(spec, spec.default_batch, seed) for which, seed in seeds.items()}
        return {which: labels for which, labels in drawn.items() if labels is not None}
    given = _read(Path(source.labels))
    _require_fitting(given, spec)
    found = {}
    for number, (which, seed) in enumerate(seeds.items()):
        shuffled = np.random.default_rng([seed, number]).permutation(given.reshape(-1)).reshape(given.shape)
        found[which] = np.ascontiguousarray(given if number == 0 else shuffled)
    return found


def labels_in(labels: Mapping[str, Labels], which: str) -> dict[str, Labels]:
    """Of the file of a set of inputs: those of mode "grad", which stay the same, and those of the batch."""
    return {LABELS: next(iter(labels.values())), BATCH_LABELS: labels[which]} if which in labels else {}


def require_readable_labels(source: Source) -> None:
    """Refuse a file of labels for the loss before the model is opened, which may take long."""
    if source.loss:
        given_labels(source)


def given_labels(source: Source) -> Labels | None:
    """Read the user's labels of the first batch, which may be of any shape; None where there are none."""
    return _read(Path(source.labels)) if source.labels else None


def _read(path: Path) -> Labels:
    try:
        require_regular(path)
        if why := why_not_read(path):
            raise SourceError(f"{path} cannot be read as labels: {why}", code="E_SOURCE_SIZE")
        found = np.load(path, allow_pickle=False)
    except SourceError:
        raise
    except Exception as error:  # NumPy raises several types
        raise SourceError(f"{path} cannot be read as labels: {why_unreadable(error)}", code=CODE) from None
    if not isinstance(found, np.ndarray) or not found.ndim or found.dtype.kind not in "iuf":
        raise SourceError(f"{path} is not one array of numbers, a .npy file", code=CODE)
    return _narrowed(found, path)


def _narrowed(found: Labels, path: Path) -> Labels:
    """To 32 bits, which hold the same numbers up to rounding."""
    if found.dtype.kind == "f":
        with np.errstate(over="ignore"):
            narrow = found.astype(np.float32)
        if not np.isfinite(narrow).all():
            raise SourceError(f"{path} has labels that are not finite numbers of float32", code=CODE)
        return narrow
    least, most = int(found.min(initial=0)), int(found.max(initial=0))
    limits = np.iinfo(np.int32)
    if least < limits.min or most > limits.max:
        raise SourceError(f"{path} has labels from {least} to {most}, which int32 does not hold", code=CODE)
    return found.astype(np.int32)


def _require_fitting(given: Labels, spec: Spec) -> None:
    wanted = spec.label_tensor()
    if wanted is None:
        return
    shape = wanted.sized(spec.default_batch)
    if given.shape != shape or given.dtype != wanted.dtype:
        raise SourceError(
            f"--labels must be {wanted.dtype} of the shape {list(shape)} for this loss (got {given.dtype} of "
            f"{list(given.shape)})",
            code=CODE,
        )
    classes = spec.outputs[0].shape[-1]
    if spec.loss == "cross_entropy" and not (given.min() >= 0 and given.max() < int(classes)):
        raise SourceError(
            f"--labels must be classes from 0 to {int(classes) - 1} (got {given.min()}..{given.max()})", code=CODE
        )


def require_loss_that_fits(spec: Spec) -> None:
    first = spec.outputs[0]
    if not first.dtype.startswith("float"):
        raise SourceError(f"the loss is of the first output, and {first.name} is {first.dtype}", code=CODE)
    if spec.loss == "cross_entropy" and len(first.shape) < 2:
        raise SourceError(
            f"cross_entropy takes scores of classes on the last axis, and {first.name} is {list(first.shape)}",
            code=CODE,
        )
    if LABELS in {tensor.name for tensor in spec.inputs}:
        raise SourceError(f"an input named {LABELS} would be taken for those of the loss; rename it", code=CODE)


def proven(
    learner: Learner,
    spec: Spec,
    weights: Arrays,
    sets: Mapping[str, Arrays],
    labels: Mapping[str, Labels],
    forward: Forward,
) -> Learnt:
    """``forward`` is the float64 reference of the model's outputs, which knows nothing of its gradients."""
    wide = dict(InFloat64(weights))
    first, second = [Batch(dict(InFloat64(sets[which])), labels.get(which)) for which in list(sets)[:2]]
    slopes = _slopes(learner, wide, first)
    if not are_same(slopes, _slopes(learner, wide, first)):
        raise DrawsNumbers(
            "the loss or its gradients are others each time for the same inputs: the loss, or a backward pass of your "
            "own, draws random numbers or keeps a state; remove that, or start from the same seed in each call"
        )
    others = _slopes(learner, wide, second)
    silent = [name for name in learner.trained if not slopes.gradients[name].any() and not others.gradients[name].any()]
    trained = tuple(name for name in learner.trained if name not in silent)
    if spec.loss != "own":
        _require_agreement(replace(learner, trained=trained), spec, slopes, wide, first, forward)
    if not trained:
        raise SourceError("the loss depends on none of the model's weights", code=CODE)
    if silent and not learner.unused_are_constants:
        raise SourceError(
            f"no gradient reaches {_first(silent)}, so nothing could show that it is trained; {learner.how_to_freeze}, "
            f"or look for {learner.cut_off_by} in the model",
            code=CODE,
        )
    if learner.why_not_train:
        return Learnt(trained, labels, learner.why_not_train)
    return replace(_in_training(learner, wide, first, slopes), trained=trained, labels=labels)


def _in_training(learner: Learner, weights: Arrays, batch: Batch, in_inference: Slopes) -> Learnt:
    once, again = _slopes(learner, weights, batch, training=True), _slopes(learner, weights, batch, training=True)
    if not are_same(once, again):
        why = "it draws random numbers in training, as dropout does, and frameworks draw others; set them to 0"
        return Learnt((), {}, why)
    moves = any(not np.array_equal(array, weights[name]) for name, array in once.averages.items())
    return Learnt((), {}, other_in_training=moves or not are_same(once, in_inference))


def _slopes(learner: Learner, weights: Arrays, batch: Batch, *, training: bool = False) -> Slopes:
    try:
        found = learner.slopes(weights, batch, training)
    except FairlapError:
        raise
    except Exception as error:  # of the user's code and of the framework that differentiates it
        raise SourceError(f"the loss or its gradients cannot be computed: {cause_of(error)}", code=CODE) from None
    if not np.isfinite(found.loss) or not all(np.isfinite(each).all() for each in found.gradients.values()):
        raise SourceError("the loss or its gradients are not finite for these inputs", code=CODE)
    return found


def require_loss(source: Source, spec: Spec) -> None:
    """Check the loss and the user's labels by the form of the outputs, before anything that takes long."""
    require_loss_that_fits(spec)
    if source.labels:
        _require_fitting(_read(Path(source.labels)), spec)


def _require_agreement(
    learner: Learner, spec: Spec, slopes: Slopes, weights: Arrays, batch: Batch, forward: Forward
) -> None:
    """Compare them with the loss of the outputs' reference, and with its slopes along random directions."""
    trained, output = learner.trained, spec.outputs[0].name

    def loss(moved: Arrays) -> float:
        return float(loss_of(spec.loss, outputs_of(forward, moved, batch.inputs)[output], batch.labels))

    def misfit(names: Sequence[str], number: int) -> str:
        """Compare both slopes along a random direction of these weights; empty where they are the same."""
        rng = np.random.default_rng(number)
        along = {name: rng.choice([-1.0, 1.0], weights[name].shape) * _size(weights[name]) for name in names}
        for name in along.keys() & learner.padding.keys():  # whose gradient is not the slope, and is not meant to be
            along[name][list(learner.padding[name])] = 0.0
        got = sum(float(np.sum(along[name] * slopes.gradients[name])) for name in names)
        scale = sum(float(np.sum((_size(weights[name]) * slopes.gradients[name]) ** 2)) for name in trained) ** 0.5
        quotients = [_quotient(loss, weights, along, _STEP / 10**power) for power in range(4)]
        fits = min(abs(got - each) for each in quotients) <= _AGREES * max(scale, 1e-300)
        return "" if fits else f"its slope is {quotients[-1]:.6g}, theirs {got:.6g}"

    exact = loss(weights)
    if abs(exact - slopes.loss) > _SAME * max(abs(exact), 1.0):
        raise SourceError(f"the loss is {slopes.loss:.9g} where its gradients are taken, and {exact:.9g}", code=CODE)
    for number in range(_DIRECTIONS):
        if found := misfit(trained, number):
            at_fault = [name for name in trained[:_MOST_TRIED] if misfit([name], number)]
            named = _named_misfits(slopes, at_fault) or found
            raise SourceError(
                f"the gradients that are taken do not fit the loss: {named}; look for {learner.cut_off_by} in the "
                "model",
                code=CODE,
            )


def _named_misfits(slopes: Slopes, names: Sequence[str]) -> str:
    """Name the first weights that get no gradient, or a wrong one; empty where none was found."""
    if without := [name for name in names if not slopes.gradients[name].any()]:
        return f"none reaches {_first(without)}, on which it depends"
    return f"that of {_first(names)} is another than its slope" if names else ""


def _first(names: Sequence[str]) -> str:
    further = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {further} more" if further > 0 else "")


def _quotient(loss: Any, weights: Arrays, along: Mapping[str, Any], step: float) -> float:
    ahead, behind = (
        loss({name: array + by * along[name] if name in along else array for name, array in weights.items()})
        for by in (step, -step)
    )
    return float(ahead - behind) / (2 * step)


def _size(array: Any) -> float:
    return float(np.sqrt(np.mean(np.square(array)))) or 1.0
