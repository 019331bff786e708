"""Files of labels that hold no labels, and labels of which no figure can be made, are refused in one line."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.metrics.metric import IGNORED, Output
from fairlap.models.sources.given_data.labels import labels_in
from fairlap.models.sources.learning.proof import given_labels
from fairlap.models.task_metrics import Score, parts_of, require_labels, score_of, value_of
from fairlap.request.fields.source import Source

ITEMS, CLASSES = 6, 3
RNG = np.random.default_rng(7)
SCORES = RNG.standard_normal((ITEMS, CLASSES))
WORDS = {
    "text": b"0\n1\n2\n",
    "table": b"item,label\n0,1\n",
    "json": b'{"labels": [0, 1]}',
    "zeros": bytes(200),
    "nothing": b"",
    "cut": b"\x93NUMPY\x01\x00v\x00{'descr': '<i8'",
    "zip": b"PK\x03\x04",
    "pickle": pickle.dumps([0, 1, 2]),
}


def refused_as(path: Path, read: str) -> FairlapError:
    with pytest.raises(FairlapError) as refused:
        labels_in(path, ["top1"]) if read == "metric" else given_labels(Source("m", "m", labels=str(path)))
    assert "\n" not in str(refused.value)
    assert "pickle" not in str(refused.value)  # no advice to unpickle it
    return refused.value


@pytest.mark.parametrize("read", ["metric", "loss"])
@pytest.mark.parametrize("name", list(WORDS))
def test_what_is_no_array_is_refused_and_not_called_python_objects(tmp_path: Path, name: str, read: str) -> None:
    file = tmp_path / "labels.npy"
    file.write_bytes(WORDS[name])
    error = refused_as(file, read)
    assert error.code == {"metric": "E_METRIC", "loss": "E_LOSS"}[read]
    assert "Python objects" not in str(error)


@pytest.mark.parametrize("read", ["metric", "loss"])
def test_python_objects_are_called_so(tmp_path: Path, read: str) -> None:
    np.save(tmp_path / "labels.npy", np.array([0, None], dtype=object), allow_pickle=True)
    assert "Python objects" in str(refused_as(tmp_path / "labels.npy", read))


@pytest.mark.parametrize("metric", ["top1", "mse", "psnr", "ndcg@2", "wer"])
def test_a_label_that_is_missing_is_named_by_its_item(metric: str) -> None:
    labels = np.zeros((4, 3))
    labels[2, 1] = np.nan
    with pytest.raises(FairlapError) as refused:
        require_labels(metric, labels, 4, [Output("y", (4, 3), "float32")])
    assert refused.value.code == "E_METRIC"
    assert "item 2 is nan" in str(refused.value)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 2**32 + 1]),
        np.array([0, 2**63], dtype=np.uint64),
        np.array([-(2**40)]),
        np.array([0.5, np.nan]),
        np.array([np.inf]),
        np.array([1e300]),
        np.array(["0", "1"]),
        np.array([True]),
        np.array([1j]),
        np.array(1),
    ],
    ids=["wraps to 1", "unsigned", "negative", "nan", "infinite", "too large", "text", "bool", "complex", "one number"],
)
def test_labels_of_a_loss_that_32_bits_do_not_hold_are_refused(tmp_path: Path, labels: np.ndarray) -> None:
    np.save(tmp_path / "labels.npy", labels)
    assert refused_as(tmp_path / "labels.npy", "loss").code == "E_LOSS"


def test_labels_of_a_loss_are_the_same_numbers_in_32_bits(tmp_path: Path) -> None:
    for labels in (np.array([0, 2**31 - 1, -5]), np.array([3], dtype=np.uint8), np.array([0.5, -1e30])):
        np.save(tmp_path / "labels.npy", labels)
        found = given_labels(Source("m", "m", labels=str(tmp_path / "labels.npy")))
        assert found is not None
        assert found.dtype.itemsize == 4
        np.testing.assert_allclose(found, labels, rtol=1e-6)


@pytest.mark.parametrize("metric", ["pearson", "spearman"])
def test_a_column_of_labels_that_does_not_differ_has_no_correlation(metric: str) -> None:
    labels = RNG.standard_normal((ITEMS, CLASSES))
    require_labels(metric, labels, ITEMS, [Output("y", SCORES.shape, "float32")])
    labels[:, 1] = 4.0
    with pytest.raises(FairlapError) as refused:
        require_labels(metric, labels, ITEMS, [Output("y", SCORES.shape, "float32")])
    assert refused.value.code == "E_METRIC"


@pytest.mark.parametrize(("metric", "outputs"), [("pearson", np.ones((ITEMS, 1))), ("mse", np.full((ITEMS, 1), 1e200))])
def test_a_figure_that_is_not_finite_is_refused_and_not_written_as_null(metric: str, outputs: np.ndarray) -> None:
    with np.errstate(over="ignore"), pytest.raises(FairlapError) as refused:
        score_of(metric, [parts_of(metric, [outputs], RNG.standard_normal((ITEMS, 1)))])
    assert refused.value.code == "E_METRIC"


@pytest.mark.slow_but("f1")
@pytest.mark.parametrize(
    "metric", ["top1", "precision", "recall", "f1", "f1@1", "mcc", "roc_auc", "perplexity", "brier", "ece"]
)
def test_resamples_in_which_no_label_counts_are_neither_an_error_nor_a_warning(metric: str) -> None:
    """Of six items one counts, so every third resample has none that does: among so many, some."""
    if metric not in ("top1", "perplexity", "brier", "ece"):
        pytest.importorskip("sklearn", reason="`make test` installs it and runs this")
    labels = np.full(ITEMS, IGNORED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(value_of(metric, [parts_of(metric, [SCORES], labels)]))
        labels[0] = 1
        if metric not in ("mcc", "roc_auc"):  # which need two classes
            found = score_of(metric, [parts_of(metric, [SCORES], labels)], resamples=99)
            assert isinstance(found, Score)
            assert (found.low, found.why_no_interval != "") == (None, True)
