"""The row has scores by severity and the mean corruption error, and says whether int8 loses more on corrupted data."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from fairlap.models.metrics.metric import Parts
from fairlap.models.slices.corruptions import Corrupted, changes_by_corruption, corrupted_scores
from fairlap.models.slices.slice_scores import SliceScores
from fairlap.models.task_metrics import parts_of, score_of
from fairlap.race.run import Run
from fairlap.render.files import markdown_file
from fairlap.render.report.section_tables import section_tables
from fairlap.render.text.corrupted_scores import corrupted_sections
from fairlap.render.text.terminal import text_of
from fairlap.request.fields.data.corruption import corruptions_in
from fairlap.results.flat_row import flat, row_of_cells
from fairlap.results.results import Results, results_of
from fairlap.results.row import Row
from fairlap.scenarios.process_result import ProcessResult
from runs_for_rows import a_run
from runs_of_precisions import planned, shown

ITEMS, CLASSES = 800, 4
CORRUPTIONS = corruptions_in(["fog:1", "fog:5", "contrast:3"])
LABELS = np.random.default_rng(0).integers(0, CLASSES, ITEMS)
WRONG = {"fp32": (0.05, 0.1, 0.2, 0.1), "int8": (0.06, 0.15, 0.5, 0.12)}  # as they are, and by corruption


def parts(metric: str, wrong: float) -> Parts:
    drawn = np.random.default_rng(5)
    best = np.where(drawn.random(ITEMS) < wrong, (LABELS + 1) % CLASSES, LABELS)
    return parts_of(metric, [np.eye(CLASSES)[best]], LABELS)


def corrupted_run(metrics: tuple[str, ...] = ("top1",), names: slice = slice(None)) -> Run:
    plan = planned(precision=("fp32", "int8"))
    run = shown(plan).run
    first: dict[tuple[str, str], ProcessResult] = {}
    for process in run.processes:
        first.setdefault((process.contestant, process.work_id), process)
    earlier: dict[tuple[str, str], dict[str, Corrupted]] = {}
    for key, process in first.items():
        precision = next(work.precision for work in plan.works if work.id == process.work_id)
        clean, *wrong = WRONG[precision]
        own = {
            metric: Corrupted(
                metric,
                parts(metric, clean),
                {each: parts(metric, share) for each, share in list(zip(CORRUPTIONS, wrong, strict=True))[names]},
            )
            for metric in metrics
        }
        changes = [
            change
            for whose, other in earlier.items()
            for metric in metrics
            for change in changes_by_corruption(own[metric], other[metric], *whose)
        ]
        process.corrupted = SliceScores({metric: corrupted_scores(own[metric]) for metric in metrics}, changes)
        process.scores = {metric: score_of(metric, [own[metric].clean]) for metric in metrics}
        earlier[key] = own
    return run


SHOWN = results_of(corrupted_run(), "r")


def row_of(results: Results, contestant: str, precision: str) -> Row:
    return next(row for row in results.rows if (row.contestant, row.precision) == (contestant, precision))


def right(precision: str, number: int) -> float:
    hits, counts = parts("top1", WRONG[precision][number])
    return float(hits.sum() / counts.sum())


def test_scores_are_by_severity_and_errors_are_divided_by_those_of_fp32() -> None:
    found = row_of(SHOWN, "torch", "int8").corrupted_scores["top1"]
    assert found.against == "torch in fp32"
    fog, contrast = found.corruptions["fog"], found.corruptions["contrast"]
    assert {name: score.value for name, score in fog.by_severity.items() if score} == {
        "1": pytest.approx(right("int8", 1)),
        "5": pytest.approx(right("int8", 2)),
    }
    errors = {precision: [1 - right(precision, number) for number in range(4)] for precision in WRONG}
    own, other = errors["int8"], errors["fp32"]
    assert fog.corruption_error == pytest.approx((own[1] + own[2]) / (other[1] + other[2]))
    assert contrast.corruption_error == pytest.approx(own[3] / other[3])
    assert found.mean_corruption_error == pytest.approx(
        ((own[1] + own[2]) / (other[1] + other[2]) + own[3] / other[3]) / 2
    )
    assert found.mean == pytest.approx(1 - ((own[1] + own[2]) / 2 + own[3]) / 2)


def test_int8_is_shown_to_lose_more_and_another_runtime_is_not() -> None:
    for contestant in ("torch", "jax"):
        found = row_of(SHOWN, contestant, "int8").corrupted_scores["top1"]
        assert found.all.outcome == "worse"
        assert found.corruptions["fog"].slice.outcome == "worse"
        assert found.corruptions["contrast"].slice.outcome in ("inconclusive", "equivalent")
    assert row_of(SHOWN, "torch", "fp32").corrupted_scores["top1"].all.outcome is None
    jax = row_of(SHOWN, "jax", "fp32").corrupted_scores["top1"]
    assert (jax.against, jax.mean_corruption_error) == ("torch", 1)
    assert jax.all.outcome in ("inconclusive", "equivalent")


def test_one_corruption_alone_is_judged_as_all() -> None:
    found = row_of(results_of(corrupted_run(("top1",), slice(1)), "r"), "jax", "int8").corrupted_scores["top1"]
    assert list(found.corruptions) == ["fog"]
    assert found.all == found.corruptions["fog"].slice


def test_rows_and_runs_keep_them_and_runs_without_corruptions_have_none() -> None:
    row = row_of(SHOWN, "torch", "int8")
    assert row_of_cells(flat(row)) == row
    stored = msgspec.json.decode(msgspec.json.encode(corrupted_run()), type=Run)
    assert list(results_of(stored, "r").rows) == list(SHOWN.rows)
    assert {len(row.corrupted_scores) for row in results_of(a_run()).rows} == {0}


def test_every_output_for_people_has_the_table() -> None:
    texts = [
        text_of(SHOWN),
        markdown_file.encode(SHOWN.rows).decode(),
        "".join(map(str, section_tables(corrupted_sections(SHOWN.rows)))),
    ]
    for text in texts:
        for word in ("fog", "contrast", "worse", "torch in fp32"):
            assert word in text
    assert not corrupted_sections(results_of(a_run()).rows)


def test_metrics_of_more_than_right_or_wrong_are_resampled() -> None:
    found = row_of(results_of(corrupted_run(("brier",)), "r"), "torch", "int8").corrupted_scores["brier"]
    assert found.all.outcome == "worse"
    assert found.mean_corruption_error is not None
    assert found.mean_corruption_error > 1
