"""A race of several operations ends with one table."""

from __future__ import annotations

import re

import msgspec
import pytest
from fairlap.race.planning.plan import SkippedWork
from fairlap.race.run import Run
from fairlap.render.text.operations import operations_lines
from fairlap.render.text.terminal import text_of
from fairlap.results.results import results_of
from runs_to_show import run_of

NAMES = ("gemm-m5-n3-k7", "lstm-h5-b2-t4")


def run_of_operations(skipped: tuple[SkippedWork, ...] = ()) -> Run:
    run = run_of()
    works = tuple(
        msgspec.structs.replace(work, model=name, batch=1) for work, name in zip(run.plan.works, NAMES, strict=True)
    )
    ids = dict(zip((work.id for work in run.plan.works), (work.id for work in works), strict=True))
    for process in run.processes:
        process.work_id = ids[process.work_id]
    run.plan = msgspec.structs.replace(run.plan, works=works, skipped=skipped)
    return run


def test_a_line_has_the_place_the_time_and_the_ratio_of_every_contestant() -> None:
    table = [re.split(" {2,}", line) for line in operations_lines(results_of(run_of_operations()))]
    assert table[0] == ["operation", "torch", "jax", "wrong"]
    assert [line[0] for line in table[1:]] == list(NAMES)
    assert [line[3].partition(" ")[0] for line in table[1:]] == ["disqualified", "#3"]
    for line, milliseconds in zip(table[1:], (1, 2), strict=True):
        one, first, unit = line[1].split()
        two, second, _, ratio = line[2].split()
        assert (one, two, unit, ratio) == ("#1", "#2", "ms", "(2.00×)")
        assert float(first) == pytest.approx(milliseconds, rel=0.01)
        assert float(second) == pytest.approx(2 * milliseconds, rel=0.01)


def test_skipped_operations_are_listed_with_the_reason() -> None:
    lines = operations_lines(results_of(run_of_operations((SkippedWork("gemm-m9-n9-k9", "no room"),))))
    assert lines[-1] == "skipped gemm-m9-n9-k9: no room"


def test_the_table_is_the_end_of_the_answer() -> None:
    results = results_of(run_of_operations())
    assert text_of(results).endswith("\n\n" + "\n".join(operations_lines(results)))


def test_models_have_no_such_table() -> None:
    assert operations_lines(results_of(run_of())) == []
