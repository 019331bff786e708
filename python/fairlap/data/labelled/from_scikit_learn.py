"""Data sets that come with scikit-learn, so that nothing is fetched."""

from __future__ import annotations

from typing import Any

from fairlap.data.labelled.items import CODE
from fairlap.errors import InvalidRequest
from fairlap.machine.variables import variables_kept


def loaded(name: str, **options: Any) -> Any:
    """With ``data``, ``target`` and, of classes, ``target_names``."""
    try:
        with variables_kept():
            from sklearn import datasets
    except ModuleNotFoundError:
        raise InvalidRequest(
            f"{name} comes with scikit-learn, which is not installed: pip install 'fairlap[metrics]'", code=CODE
        ) from None
    return getattr(datasets, f"load_{name}")(**options)
