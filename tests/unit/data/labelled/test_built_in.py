"""Labelled data sets: the same items every time, none of them both learnt from and held out."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from fairlap.data.labelled.built_in import BUILT_IN, labelled_set
from fairlap.models.registry import find

pytest.importorskip("sklearn")


def test_digits() -> None:
    found, tensor = labelled_set("digits"), find("digits").spec.inputs[0]
    assert (len(found.labels), len(found.held_labels)) == (1438, 359)
    assert found.inputs["image"].shape == (1438, *tensor.sized(1)[1:])
    assert found.inputs["image"].dtype == np.dtype(tensor.dtype)
    assert (found.inputs["image"].min(), found.inputs["image"].max()) == (0.0, 1.0)
    assert set(found.labels) == set(found.held_labels) == set(range(10))
    assert found.hash == labelled_set("digits").hash


@pytest.mark.parametrize(
    ("name", "learnt", "held", "features"), [("breast_cancer", 455, 114, 30), ("diabetes", 354, 88, 10)]
)
def test_tables(name: str, learnt: int, held: int, features: int) -> None:
    found = labelled_set(name)
    assert found.inputs["features"].shape == (learnt, features)
    assert found.held_inputs["features"].shape == (held, features)
    assert found.inputs["features"].dtype == np.float32
    np.testing.assert_allclose(found.inputs["features"].mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(found.inputs["features"].std(axis=0), 1, atol=1e-5)


def test_breast_cancer_has_two_classes_and_diabetes_a_value() -> None:
    cancer, diabetes = labelled_set("breast_cancer"), labelled_set("diabetes")
    assert cancer.classes == ("malignant", "benign")
    assert set(cancer.labels) == set(cancer.held_labels) == {0, 1}
    assert (diabetes.classes, diabetes.labels.shape, diabetes.labels.dtype) == ((), (354, 1), np.dtype(np.float32))


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_set_says_where_it_is_from_and_its_licence(name: str) -> None:
    found = BUILT_IN[name]()
    assert found.origin
    assert found.licence
    assert found.hash == BUILT_IN[name]().hash


def test_loading_leaves_the_variables_as_they_are() -> None:
    code = (
        "import os; before = dict(os.environ); from fairlap.data.labelled.built_in import labelled_set as load; "
        "load('digits'); assert dict(os.environ) == before"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_no_item_is_both_learnt_from_and_held_out() -> None:
    found = labelled_set("digits")
    learnt = {image.tobytes() for image in found.inputs["image"]}
    assert not any(image.tobytes() in learnt for image in found.held_inputs["image"])
