"""Open Images' mean average precision is that of its challenges' evaluator, and of a count by hand."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.metrics.boxes import BOX, GROUP, VERIFIED, padded_rows
from fairlap.models.metrics.metric import Output
from fairlap.models.task_metrics import parts_of, require_labels, score_of, value_of

Given = list[tuple[float, float, float, float, float, float]]  # corners, score, class


def outputs_of(images: list[Given]) -> list[np.ndarray]:
    filled = [[*rows, *[(0.0, 0.0, 0.0, 0.0, 0.0, -1.0)] * (12 - len(rows))] for rows in images]
    found = np.array(filled)
    return [found[..., :4], found[..., 4], found[..., 5]]


CAT, DOG = 0, 1
LABELS = padded_rows([
    [(10, 10, 20, 20, CAT, BOX)],
    [(0, 0, 100, 100, CAT, GROUP), (200, 0, 10, 10, DOG, BOX)],
    [(0, 0, 0, 0, CAT, VERIFIED)],
    [(0, 0, 0, 0, DOG, VERIFIED)],
])  # fmt: skip
FOUND: list[Given] = [
    [(10, 10, 30, 32, 0.9, CAT), (11, 10, 30, 30, 0.8, CAT), (10, 10, 30, 30, 0.99, DOG)],
    [(5, 5, 20, 20, 0.7, CAT), (50, 50, 60, 60, 0.6, CAT), (90, 90, 110, 105, 0.5, CAT)],
    [(1, 1, 9, 9, 0.95, CAT)],
    [(1, 1, 9, 9, 0.98, CAT)],
]


def test_it_is_that_of_a_count_by_hand() -> None:
    # Cats, from the surest one: looked for in the third image and not there, found, found twice, the group found. The
    # 0.6 is inside of a group that is found, and of the 0.5 a third is inside of it, so it is wrong. That is 1 of 2 and
    # 2 of 4 when each of two is found. The 0.98 is where nobody looked for cats, and so is the dog of 0.99; the dog is
    # not found.
    cats = (1 / 2 + 2 / 4) / 2
    assert value_of("oi_map", [parts_of("oi_map", outputs_of(FOUND), LABELS)]) == pytest.approx(
        cats / 2
    )  # no dog found


def test_the_best_precision_at_a_recall_or_a_higher_one_counts() -> None:
    labels = padded_rows([[(0, 0, 10, 10, CAT, BOX), (50, 0, 10, 10, CAT, BOX), (0, 50, 10, 10, CAT, BOX)]])
    wrong = (80, 80, 90, 90)
    found: Given = [(*wrong, 0.9, CAT), (0, 0, 10, 10, 0.8, CAT), (50, 0, 60, 10, 0.7, CAT), (*wrong, 0.6, CAT)]
    # One of two, then two of three, which counts at both; the third is not found.
    assert value_of("oi_map", [parts_of("oi_map", outputs_of([found]), labels)]) == pytest.approx((2 / 3 + 2 / 3) / 3)


def spread(number: int, below: int) -> float:
    """Make numbers that look drawn and are the same everywhere."""
    return float(number * 7919 % 104_729 % below)


def many(images: int = 14, classes: int = 4) -> tuple[list[np.ndarray], np.ndarray]:
    """Move and double boxes, change the classes of some, and add some in what was looked for."""
    labels, given, number = [], [], 1
    for image in range(images):
        rows: list[tuple[float, ...]] = []
        found: Given = []
        for place in range(image % 4):
            number += 1
            left, top = 40.0 * place + spread(number, 17), spread(3 * number, 40)
            wide, high = 12 + spread(5 * number, 25), 12 + spread(7 * number, 25)
            kind, group = int(spread(11 * number, classes - 1)), int((image + place) % 3 == 1)
            rows.append((left, top, wide, high, kind, group))
            for _ in range(1 + int(spread(17 * number, 3))):
                number += 1
                by = (spread(19 * number, 11) - 5) / (4 if group else 1)
                corners = (left + by, top + by, left + wide + by / 2, top + high - by)
                named = kind if spread(23 * number, 7) else classes - 1
                found.append((*corners, 0.1 + spread(29 * number, 900) / 1000 + number / 1e5, named))
        for kind in range(classes):
            if spread(31 * number + kind, 3) == 0:
                rows.append((0, 0, 0, 0, kind, VERIFIED))
                found.append((2, 2, 30, 30, 0.05 + spread(37 * number + kind, 940) / 1000 + number / 1e6, kind))
        labels.append(rows)
        given.append(found)
    return outputs_of(given), padded_rows(labels)


BY_THE_EVALUATOR = 0.7692019400352734
"""Of these boxes, by OpenImagesChallengeEvaluator of TensorFlow's object detection, in effdet 0.4.1's copy."""


def test_it_is_that_of_the_challenges_evaluator() -> None:
    outputs, labels = many()
    batches = [parts_of("oi_map", [each[at : at + 5] for each in outputs], labels[at : at + 5]) for at in (0, 5, 10)]
    assert value_of("oi_map", batches) == pytest.approx(BY_THE_EVALUATOR, rel=1e-12)
    found = score_of("oi_map", batches)
    assert found.low is not None
    assert found.high is not None
    assert found.low < BY_THE_EVALUATOR < found.high


def test_right_boxes_have_1_and_none_have_0() -> None:
    right: list[Given] = [[(10, 10, 30, 30, 0.9, CAT)], [(1, 1, 5, 5, 0.8, CAT), (200, 0, 210, 10, 0.7, DOG)], [], []]
    assert value_of("oi_map", [parts_of("oi_map", outputs_of(right), LABELS)]) == 1.0
    assert value_of("oi_map", [parts_of("oi_map", outputs_of([[]] * 4), LABELS)]) == 0.0
    flat: list[Given] = [[(10, 10, 10, 30, 0.9, CAT)], [], [], []]  # without an area
    assert value_of("oi_map", [parts_of("oi_map", outputs_of(flat), LABELS)]) == 0.0


def test_outputs_of_other_shapes_are_refused() -> None:
    outputs = [Output("boxes", (4, 12, 4), "float32"), Output("scores", (4, 12, 1), "float32")]
    with pytest.raises(FairlapError) as refused:
        require_labels("oi_map", LABELS, 4, [*outputs, Output("classes", (4, 12), "float32")])
    assert refused.value.code == "E_METRIC"
