"""The labelled data sets that built-in models learn from. Each comes with a package, so nothing is fetched."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fairlap.data.labelled.digits import digits
from fairlap.data.labelled.labelled_set import LabelledSet

_SETS: Mapping[str, Callable[[], LabelledSet]] = {"digits": digits}


def labelled_set(name: str) -> LabelledSet:
    return _SETS[name]()
