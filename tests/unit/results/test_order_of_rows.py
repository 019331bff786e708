"""Rows are in the order of their ranks, then of the figures that they show, wherever they are shown."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.run import Run
from fairlap.render.files.markdown_file import encode as as_markdown
from fairlap.render.judged import RATIOS_OF_BLOCKS
from fairlap.render.report.answer import answer
from fairlap.render.text.terminal import text_of
from fairlap.request.names import Contestants
from fairlap.request.work import Work
from fairlap.results.results import Results, results_of
from fairlap.scenarios.process_result import ProcessResult, Timing
from fairlap.store.runs.run_file import run_document

WORK = Work("mlp", 4)


def shown(torch_ms: Sequence[float], jax_ms: Sequence[float], baseline: str = "") -> Results:
    names, times = Contestants("torch,jax"), {"torch": torch_ms, "jax": jax_ms}
    plan = draw_plan(
        names,
        (WORK,),
        blocks=len(jax_ms),
        conditions="as-found",
        threads=1,
        available_cores=(0,),
        seed=1,
    )
    processes = []
    for block in range(len(jax_ms)):
        for name in times:
            ns = 1e6 * times[name][block]
            timings = {"wall_ns": Timing(ns, ns, ns, 100, 1, 0, "flat", "tsc", 10.0)}
            processes.append(ProcessResult(block, 0, name, WORK.id, "as-found", timings=timings))
    return results_of(Run(plan, processes, {}, {}), "r", baseline=baseline)


def order_everywhere(found: Results) -> list[str]:
    [work] = found.work_results
    order = [each.contestant for each in work.contestants]
    assert work.standing is not None
    assert [place.contestant for place in work.standing.places] == order
    assert [row.contestant for row in run_document(found.run, found).rows] == order
    for text in (text_of(found), as_markdown(found.rows).decode().partition("---")[2]):
        places = [text.index(f" {name}") if f" {name}" in text else text.index(name) for name in order]
        assert places == sorted(places), text
    return order


def test_a_rank_that_is_shown_comes_before_the_figure() -> None:
    # torch is faster by 5 % in 57 of 60 blocks, and slower in 3 that move its median from the low to the high times.
    low, high, contrary = 29, 28, 3
    found = shown(
        [1.0] * low + [2.0] * high + [2.0] * contrary,
        [1.05] * low + [2.1] * high + [1.05] * contrary,
    )
    [work] = found.work_results
    medians_ns = {each.contestant: each.median_ns for each in work.contestants}
    assert medians_ns["torch"] > medians_ns["jax"]
    assert work.rows[0].place == "1"
    assert order_everywhere(found) == ["torch", "jax"]


def test_undecided_rows_are_in_the_order_of_their_figures_whatever_their_ratio_and_a_sentence_says_why() -> None:
    torch_ms, jax_ms = [5.0, 6.0, 7.0, 8.0, 9.1, 10.3], [5.3, 6.3, 6.8, 7.6, 9.5, 10.9]
    found = shown(torch_ms, jax_ms, baseline="torch")
    [work] = found.work_results
    assert {row.place for row in work.rows} == {"1="}
    assert order_everywhere(found) == ["jax", "torch"]
    assert work.comparison("torch", "jax").ratio < 1.0  # type: ignore[union-attr]
    for text in (text_of(found), as_markdown(found.rows).decode(), str(answer(found, work))):
        assert text.count(RATIOS_OF_BLOCKS) == 1


def test_ratios_that_agree_with_the_figures_need_no_sentence() -> None:
    found = shown([1.0, 1.1, 1.2, 1.0, 1.1, 1.2], [2.0, 2.2, 2.4, 2.0, 2.2, 2.4])
    [work] = found.work_results
    for text in (text_of(found), as_markdown(found.rows).decode(), str(answer(found, work))):
        assert RATIOS_OF_BLOCKS not in text
