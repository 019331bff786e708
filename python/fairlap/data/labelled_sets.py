"""Labelled data sets from which built-in models learn. Each comes with a package, so nothing is fetched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairlap.errors import InvalidRequest
from fairlap.machine.variables import variables_kept
from fairlap.models.arrays import Arrays, hash_of

Labels = npt.NDArray[np.int32]

_HELD_OUT = 0.2  # of all items


@dataclass(frozen=True)
class LabelledSet:
    """Items to learn from, and others that are held out to see what was learnt."""

    inputs: Arrays  # by the model's names, in its types
    labels: Labels
    held_inputs: Arrays
    held_labels: Labels
    origin: str  # where it is from, and its licence

    @property
    def hash(self) -> str:
        held = {f"held {name}": array for name, array in self.held_inputs.items()}
        return hash_of({**self.inputs, **held, "labels": self.labels, "held labels": self.held_labels})


def labelled_set(name: str) -> LabelledSet:
    return _SETS[name]()


def _parted(inputs: Arrays, labels: Labels, origin: str) -> LabelledSet:
    """The same items are held out every time."""
    places = np.random.default_rng(0).permutation(len(labels))
    held, learnt = np.split(places, [round(_HELD_OUT * len(labels))])
    return LabelledSet(
        {name: np.ascontiguousarray(array[learnt]) for name, array in inputs.items()},
        labels[learnt],
        {name: np.ascontiguousarray(array[held]) for name, array in inputs.items()},
        labels[held],
        origin,
    )


def _digits() -> LabelledSet:
    try:
        with variables_kept():
            from sklearn.datasets import load_digits
    except ModuleNotFoundError:
        raise InvalidRequest(
            "the digits come with scikit-learn, which is not installed: pip install 'fairlap[metrics]'", code="E_DATA"
        ) from None
    images, labels = load_digits(return_X_y=True)
    image = (images / 16.0).reshape(-1, 1, 8, 8).astype(np.float32)
    origin = "1,797 handwritten digits of the UCI repository, as in scikit-learn (CC BY 4.0)"
    return _parted({"image": image}, labels.astype(np.int32), origin)


_SETS: Mapping[str, Callable[[], LabelledSet]] = {"digits": _digits}
