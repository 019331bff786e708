"""The time of one item by batch: computed by hand, named where it is least, claimed for no batch that is as good."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

import pytest
from fairlap.race.run import Run
from fairlap.render.files.markdown_file import encode
from fairlap.render.items_by_batch import NOTE, item_texts, least_time_lines, time_per_item_ns
from fairlap.render.report.page import page_of
from fairlap.render.text.terminal import text_of
from fairlap.results.results import results_of
from fairlap.scenarios.process_result import Timing
from runs_to_show import PLAIN, run_of

ITEM_NS: Mapping[int, float] = {1: 900.0, 2: 500.0, 4: 300.0, 8: 300.5, 16: 400.0}


def raced(contestants: tuple[str, ...] = ("torch",), blocks: int = 8) -> Run:
    """Give every process a time per item that is up to 0.4 % off, and twice that to the second contestant."""
    run = run_of(contestants, batches=tuple(ITEM_NS), blocks=blocks)
    seen = dict.fromkeys((each.work_id for each in run.processes), 0)
    for process in run.processes:
        batch = run.plan.work_with(process.work_id).batch
        place = contestants.index(process.contestant)
        ns = 1000 * batch * ITEM_NS[batch] * (place + 1) * (1 + 0.001 * (seen[process.work_id] % 5))
        seen[process.work_id] += 1
        process.timings = {"wall_ns": Timing(ns, ns, ns, 100, 1, 0, "flat", "tsc", 10.0)}
    return run


def test_the_time_per_item_is_the_median_of_processes_divided_by_the_batch() -> None:
    run = raced()
    for row in results_of(run, "r").rows:
        calls = [each.headline_ns for each in run.processes if each.work_id == row.work_id]
        found = time_per_item_ns(row)
        assert found is not None
        assert found.value * row.batch == pytest.approx(statistics.median(calls), rel=0.002)
        assert found.low is not None
        assert found.high is not None
        assert min(calls) / row.batch == pytest.approx(found.low)  # of eight processes, by the sign test
        assert max(calls) / row.batch == pytest.approx(found.high)


def test_the_least_is_named_with_its_rate_and_the_batches_whose_intervals_overlap() -> None:
    rows = results_of(raced(), "r").rows
    least = time_per_item_ns(next(row for row in rows if row.batch == 4))
    assert least is not None
    [line] = least_time_lines(rows)
    assert line.startswith("torch: least time per item at batch 4, ")
    assert f"({1e9 / least.value:,.4g} items/s)" in line
    assert "not distinguished from batch 8:" in line
    assert "16" not in line


def test_a_batch_that_is_far_better_overlaps_with_none() -> None:
    rows = [row for row in results_of(raced(), "r").rows if row.batch != 8]
    [line] = least_time_lines(rows)
    assert line.endswith("no other interval overlaps")


def test_without_intervals_no_batch_is_distinguished() -> None:
    rows = results_of(raced(blocks=2), "r").rows
    assert all(row.judged is not None and row.judged.high is None for row in rows)
    [line] = least_time_lines(rows)
    assert "no interval" in line


def test_a_batch_with_several_modes_has_no_time_per_item_and_is_named() -> None:
    run = raced(blocks=12)
    own = [process for process in run.processes if run.plan.work_with(process.work_id).batch == 2]
    for number, process in enumerate(own):
        ns = (1e6 if number % 2 else 1e5) * (1 + 0.001 * number)
        process.timings = {"wall_ns": Timing(ns, ns, ns, 100, 1, 0, "flat", "tsc", 10.0)}
    rows = results_of(run, "r").rows
    [of_modes] = [row for row in rows if row.batch == 2]
    assert of_modes.modes
    assert time_per_item_ns(of_modes) is None
    [line] = least_time_lines(rows)
    assert "at batch 4," in line
    assert line.endswith("; no single time at batch 2")


def test_works_that_differ_otherwise_or_not_at_all_have_no_least_batch() -> None:
    rows = results_of(raced(), "r").rows
    other = results_of(run_of(("torch",), batches=(4,)), "another run").rows
    assert least_time_lines(rows)
    assert not least_time_lines([*rows, *other])
    assert not least_time_lines(rows[:1])
    assert not least_time_lines([])


def test_each_contestant_has_its_column_and_its_line_in_the_table() -> None:
    shown = results_of(raced(("torch", "jax")), "r")
    _, head, *lines = text_of(shown).splitlines()
    assert head.split() == ["work", "torch", "per", "item", "jax", "per", "item", "fastest"]
    row = next(line for line in lines if line.split()[:2] == ["batch", "4"])
    assert all(text in row for text in item_texts(shown.rows)[4:6])
    assert [line.split(":")[0].strip() for line in lines if "least time per item" in line] == ["torch", "jax"]
    assert sum(NOTE in line for line in lines) == 1


def test_one_contestant_is_said_once_to_have_nothing_to_be_compared_with() -> None:
    text = text_of(results_of(raced(), "r"))
    assert "no verdict" not in text.lower()
    assert "without a single fastest" not in text
    assert text.count("nothing to compare") == 1
    assert "fastest" in text_of(results_of(raced(("torch", "jax")), "r"))


def test_few_batches_that_are_shown_one_by_one_have_the_lines_too() -> None:
    run = run_of(PLAIN, batches=(4, 8))
    assert text_of(results_of(run, "r")).count("least time per item") == 2  # the third is disqualified
    assert "per item" not in text_of(results_of(run_of(PLAIN, batches=(4,)), "r"))


def test_markdown_and_the_page_name_the_least_and_the_page_has_each() -> None:
    shown = results_of(raced(("torch", "jax")), "r")
    markdown = encode(shown.rows).decode()
    assert markdown.count("least time per item at batch 4") == 2
    assert "`torch`: least" in markdown
    answer = page_of(shown).partition('id="answer"')[2].partition("</section>")[0]
    assert answer.count("least time per item at batch 4") == 2
    assert answer.count('data-head="time per item"') == len(ITEM_NS)
