"""The labelled data sets that come with fairlap's dependencies."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fairlap.data.labelled.breast_cancer import breast_cancer
from fairlap.data.labelled.characters import characters
from fairlap.data.labelled.diabetes import diabetes
from fairlap.data.labelled.digits import digits
from fairlap.data.labelled.items import Items
from fairlap.data.labelled.labelled_set import LabelledSet, parted
from fairlap.data.labelled.mnist import mnist

BUILT_IN: Mapping[str, Callable[[], Items]] = {
    "breast_cancer": breast_cancer,
    "characters": characters,
    "diabetes": diabetes,
    "digits": digits,
    "mnist": mnist,
}


def labelled_set(name: str) -> LabelledSet:
    return parted(BUILT_IN[name]())
