"""The row names the groups that a precision changes more than others, whichever contestant answered first."""

from __future__ import annotations

import msgspec
import pytest
from fairlap.race.run import Run
from fairlap.render.files import markdown_file
from fairlap.render.report.section_tables import section_tables
from fairlap.render.text.group_scores import group_sections
from fairlap.render.text.terminal import text_of
from fairlap.results.flat_row import flat, row_of_cells
from fairlap.results.results import Results, results_of
from fairlap.results.row import Row
from fairlap.results.slices.slice_score import GroupedScore
from grouped_runs import BEST, GROUPS, IN_INT8, LABELS, NAMES, grouped_results, grouped_run
from runs_for_rows import a_run

SHOWN = grouped_results()


def score(row: Row, metric: str = "top1") -> GroupedScore:
    return row.group_scores[metric]


def row_of(results: Results, contestant: str, precision: str) -> Row:
    return next(row for row in results.rows if (row.contestant, row.precision) == (contestant, precision))


def outcomes(row: Row, metric: str = "top1") -> dict[str, str | None]:
    return {each.name: each.outcome for each in score(row, metric).groups}


@pytest.mark.parametrize("metric", ["top1", "brier"])
def test_the_group_that_int8_gets_wrong_is_worse_off_and_other_runtimes_change_none(metric: str) -> None:
    for contestant in ("torch", "jax"):
        row = row_of(SHOWN, contestant, "int8")
        assert outcomes(row, metric)["young"] == "worse"
        assert score(row, metric).against == f"{contestant} in fp32"
    assert set(outcomes(row_of(SHOWN, "torch", "fp32"), metric).values()) == {None}
    assert score(row_of(SHOWN, "torch", "fp32"), metric).against == ""
    assert score(row_of(SHOWN, "jax", "fp32"), metric).against == "torch"


def test_figures_are_those_by_hand() -> None:
    found = score(row_of(SHOWN, "torch", "int8"))
    by_group = {name: (IN_INT8 == LABELS)[number == GROUPS].mean() for number, name in enumerate(NAMES)}
    assert found.largest_difference == pytest.approx(max(by_group.values()) - min(by_group.values()))
    young = next(each for each in found.groups if each.name == "young")
    change = (IN_INT8 == LABELS).astype(float) - (BEST == LABELS)
    assert young.change == pytest.approx(change[GROUPS == 1].mean())
    assert young.elsewhere == pytest.approx(change[GROUPS != 1].mean())
    assert young.apart is not None
    assert young.change is not None
    assert young.elsewhere is not None
    assert young.apart.value == pytest.approx(young.change - young.elsewhere)
    assert young.apart.low is not None
    assert young.apart.low < young.apart.value < (young.apart.high or 0) < 0


@pytest.mark.slow
def test_the_order_in_which_contestants_answer_does_not_matter() -> None:
    turned = grouped_run()
    turned.processes.reverse()
    first = {row.contestant + row.precision: row.group_scores for row in results_of(turned, "r").rows}
    assert first == {row.contestant + row.precision: row.group_scores for row in SHOWN.rows}
    seeds = {len(row_of(grouped_results(seed=seed), "jax", "int8").group_scores) for seed in (2, 3)}
    assert seeds == {2}


@pytest.mark.slow
def test_a_baseline_and_a_ranking_across_precisions_choose_what_is_compared() -> None:
    assert score(row_of(grouped_results(baseline="jax"), "torch", "fp32")).against == "jax"
    across = grouped_results(across_precisions=True)
    assert score(row_of(across, "torch (int8)", "int8")).against == "torch (fp32)"
    assert outcomes(row_of(across, "jax (int8)", "int8"))["young"] == "worse"


def test_two_groups_are_one_question() -> None:
    run = grouped_run(("top1",))
    for process in run.processes:
        if process.groups is not None:
            kept = [each for each in process.groups.changes if each.slice != "unknown"]
            process.groups = msgspec.structs.replace(process.groups, changes=kept)
    found = {each.name: each for each in score(row_of(results_of(run, "r"), "torch", "int8")).groups}
    assert (found["young"].outcome, found["old"].outcome) == ("worse", "better")
    assert found["young"].p_adjusted == found["old"].p_adjusted


def test_rows_and_runs_keep_them_and_runs_without_groups_have_none() -> None:
    row = row_of(SHOWN, "torch", "int8")
    assert row_of_cells(flat(row)) == row
    stored = msgspec.json.decode(msgspec.json.encode(grouped_run(("top1",))), type=Run)
    assert {len(row.group_scores) for row in results_of(stored, "r").rows} == {1}
    assert {len(row.group_scores) for row in results_of(a_run()).rows} == {0}


def test_every_output_for_people_has_the_table() -> None:
    texts = [
        text_of(SHOWN),
        markdown_file.encode(SHOWN.rows).decode(),
        "".join(map(str, section_tables(group_sections(SHOWN.rows)))),
    ]
    for text in texts:
        for word in (*NAMES, "worse", "torch in fp32"):
            assert word in text
    assert not group_sections(results_of(a_run()).rows)
