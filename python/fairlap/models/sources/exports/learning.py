"""Which files of one model compute the same gradients, so that these may race.

Each file is differentiated by its own kind, and proven as alone. Its trained weights are those of the first file if
they have the same values: names, layouts and orders are the exporters', which also fold and freeze weights. Gradients
are the same if each element has that of the same value in the first file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from fairlap.errors import FairlapError
from fairlap.models.arrays import Arrays, Labels
from fairlap.models.sources.contract import Learner, Opened, Route, SourceError, SourceKind
from fairlap.models.sources.exports.matching import Match
from fairlap.models.sources.learning.loss import NO_GRADIENTS, kind_of_loss, with_learning
from fairlap.models.sources.learning.proof import proven
from fairlap.models.sources.proof import InFloat64
from fairlap.models.spec import LEARNS, Spec
from fairlap.models.training.reference import Batch, Slopes
from fairlap.request.fields.source import Source

NO_TRAINING = "several files of one model are differentiated, and steps are taken of one: name one file"
_AGREES = (
    1e-6  # relative to the gradient of all weights: what another model would exceed, and a constant's last bits not
)

Pair = npt.NDArray[np.float64]  # values, and their gradients, in the order of the values


@dataclass(frozen=True)
class FileGradients:
    """Of one file; ``why_not`` where it has none that may race."""

    trained: tuple[str, ...] = ()
    other_in_training: bool = False
    how: str = ""
    why_not: str = ""

    def of_spec(self, spec: Spec, source: Source) -> Spec:
        weights = tuple(replace(weight, trained=weight.name in self.trained) for weight in spec.weights)
        return replace(spec, loss=kind_of_loss(source.loss), weights=weights, modes=LEARNS, precisions=("fp32",))

    def of_routes(self, routes: Mapping[str, Route]) -> dict[str, Route]:
        if not self.why_not:
            return {name: with_learning(route, other=self.other_in_training) for name, route in routes.items()}
        return {name: msgspec.structs.replace(route, no_gradients=self.why_not) for name, route in routes.items()}


@dataclass(frozen=True)
class FirstFile:
    """What the gradients of the other files are compared with."""

    source: Source
    found: Opened
    slopes: Slopes
    labels: Mapping[str, Labels]


def require_gradients(source: Source, kind: type[SourceKind]) -> None:
    """Of the first file, with which the others are compared."""
    if source.loss and kind.no_gradients:
        raise SourceError(
            f"{source.text} is raced in inference only: {kind.no_gradients}; name a file first that has gradients",
            code=NO_GRADIENTS,
        )


def slopes_of(learner: Learner, found: Opened, inputs: Arrays, labels: Labels | None) -> Slopes:
    """In float64, of the model as it is in inference."""
    return learner.slopes(dict(InFloat64(found.weights)), Batch(dict(InFloat64(inputs)), labels), False)


def gradients_of_file(
    kind: type[SourceKind],
    source: Source,
    folder: Path,
    found: Opened,
    match: Match,
    spec: Spec,
    sets: Mapping[str, Arrays],
    first: FirstFile,
) -> FileGradients:
    """Prove the gradients of a further file; ``sets`` are by its own names."""
    if kind.no_gradients:
        return FileGradients(why_not=kind.no_gradients)
    if why := _why_other_loss(found, match, first):
        return FileGradients(why_not=why)
    try:
        learner = kind.learner(source, folder)
        learnt = proven(learner, spec, found.weights, sets, first.labels, found.forward)
        which = next(iter(sets))
        slopes = slopes_of(learner, found, sets[which], first.labels.get(which))
    except FairlapError as error:
        return FileGradients(why_not=str(error))
    if abs(slopes.loss - first.slopes.loss) > _AGREES * max(abs(first.slopes.loss), 1.0):
        return FileGradients(
            why_not=f"its loss is {slopes.loss:.7g}, and that of {first.source.text} {first.slopes.loss:.7g}"
        )
    trained = {name: slopes.gradients[name] for name in learnt.trained}
    if why := why_other_gradients(_pairs(first.found.weights, first.slopes.gradients), _pairs(found.weights, trained)):
        return FileGradients(why_not=f"its gradients are not those of {first.source.text}: {why}")
    return FileGradients(learnt.trained, learnt.other_in_training, learner.how)


def _why_other_loss(found: Opened, match: Match, first: FirstFile) -> str:
    """Compare which output the loss is of, since the labels are those of the first file."""
    name = first.found.outputs[0]
    place = match.outputs[name]
    if place.name == found.outputs[0] and not place.turn:
        return ""
    return f"the loss is of the first output, which is {name} in {first.source.text} and {found.outputs[0]} here"


def _pairs(weights: Arrays, gradients: Arrays) -> dict[str, Pair]:
    """By the values; where these are equal, by the gradients. Weights that no gradient reaches are left out."""
    found = {}
    for name, gradient in gradients.items():
        if np.any(gradient):
            values, slopes = np.asarray(weights[name], np.float64).reshape(-1), np.asarray(gradient).reshape(-1)
            order = np.lexsort((slopes, values))
            found[name] = np.stack((values[order], slopes[order]))
    return found


def why_other_gradients(first: Mapping[str, Pair], other: Mapping[str, Pair]) -> str:
    """Empty where each weight has the values and the gradient of one in the first file."""
    whole = float(np.sqrt(sum(float(np.sum(np.square(pair[1]))) for pair in first.values())))
    left = dict(other)
    for name, pair in first.items():
        alike = {each: own for each, own in left.items() if _same_values(pair, own)}
        if not alike:
            return f"no weight has the values of {name}, so an exporter changed, folded or froze it"
        off = {each: float(np.linalg.norm(own[1] - pair[1])) for each, own in alike.items()}
        nearest = min(off, key=lambda each: off[each])
        if not off[nearest] <= _AGREES * whole:
            return f"that of {nearest} is off by {off[nearest] / max(whole, 1e-300):.1e} of all together"
        del left[nearest]
    return f"it also trains {next(iter(left))}" if left else ""


def _same_values(one: Pair, other: Pair) -> bool:
    return one.shape == other.shape and bool(np.array_equal(one[0], other[0]))
