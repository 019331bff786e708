"""The loss of frames that spell a label is minus the logarithm of the share of all ways to spell it, one by one."""

from __future__ import annotations

from itertools import groupby, product

import numpy as np
import pytest
from fairlap.models.checks.differentiation import Traced, gradients
from fairlap.models.checks.losses import loss_of_frames
from fairlap.models.draw import draw_labels
from fairlap.models.registry import find

LABELS = np.array([[1, 1, 0], [2, 1, 2], [3, 0, 0], [0, 0, 0]], np.int32)  # one repeats itself, one is empty
FRAMES, CLASSES = 5, 4


def by_counting(logits: np.ndarray, label: list[int]) -> float:
    """Add up the shares of all paths that spell the label."""
    shares = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    paths = (
        path
        for path in product(range(logits.shape[1]), repeat=len(logits))
        if [each for each, _ in groupby(path) if each] == label
    )
    likely = sum(np.prod([shares[frame, each] for frame, each in enumerate(path)]) for path in paths)
    return -float(np.log(likely))


@pytest.fixture
def logits() -> np.ndarray:
    return np.random.default_rng(0).normal(0, 2, (len(LABELS), FRAMES, CLASSES))


def test_the_loss_is_that_of_all_ways_to_spell_the_label(logits: np.ndarray) -> None:
    rows = [[each for each in row if each] for row in LABELS.tolist()]
    each = [by_counting(own, row) / max(1, len(row)) for own, row in zip(logits, rows, strict=True)]
    assert float(loss_of_frames(logits, LABELS)) == pytest.approx(np.mean(each), rel=1e-12)


def test_its_slopes_are_those_of_the_loss_along_every_direction(logits: np.ndarray) -> None:
    loss, slopes = gradients(lambda held: loss_of_frames(held["logits"], LABELS), {"logits": logits})
    assert loss == pytest.approx(float(loss_of_frames(logits, LABELS)))
    for place in np.ndindex(*logits.shape):
        ends = []
        for by in (1e-6, -1e-6):
            moved = logits.copy()
            moved[place] += by
            ends.append(float(loss_of_frames(moved, LABELS)))
        assert slopes["logits"][place] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-8)


def test_the_loss_and_its_slopes_are_pytorch_s(logits: np.ndarray) -> None:
    torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
    theirs = torch.tensor(logits, requires_grad=True)
    shares = theirs.log_softmax(-1).transpose(0, 1)
    lengths = torch.tensor((LABELS != 0).sum(1))
    counts = torch.full((len(LABELS),), FRAMES)
    expected = torch.nn.functional.ctc_loss(shares, torch.tensor(LABELS).long(), counts, lengths)
    [slopes] = torch.autograd.grad(expected, theirs)
    found, ours = gradients(lambda held: loss_of_frames(held["logits"], LABELS), {"logits": logits})
    assert found == pytest.approx(expected.item(), rel=1e-12)
    np.testing.assert_allclose(ours["logits"], slopes.numpy(), atol=1e-12)


def test_a_label_that_the_frames_cannot_spell_has_no_likelihood() -> None:
    short = np.zeros((1, 3, 3))
    assert np.isinf(loss_of_frames(short, np.array([[1, 1, 2]])))  # a blank between the first two, so four frames


def test_float32_stays_float32(logits: np.ndarray) -> None:
    assert loss_of_frames(Traced(logits.astype(np.float32)), LABELS).dtype == np.float32


def test_drawn_labels_end_in_blanks_alone_and_frames_can_spell_them() -> None:
    spec = find("conformer:tiny").spec
    labels = draw_labels(spec, 16, seed=0)
    assert labels is not None
    described = spec.label_tensor()
    assert described is not None
    assert labels.shape == described.sized(16)
    lengths = (labels != 0).sum(axis=1)
    assert ((labels != 0) == (np.arange(labels.shape[1]) < lengths[:, None])).all()
    assert lengths.min() < lengths.max()
    repeated = ((labels[:, 1:] == labels[:, :-1]) & (labels[:, 1:] != 0)).sum(axis=1)
    assert (lengths + repeated <= int(spec.outputs[0].shape[1])).all()
