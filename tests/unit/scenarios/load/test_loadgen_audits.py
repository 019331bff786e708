"""The audits of MLPerf: answers while it is timed, and a repeated item."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.scenarios.load.loadgen import run_loadgen
from fairlap.scenarios.load.loadgen_audits import audit_answers_while_timed, audit_repeated_item
from fairlap.scenarios.load.loadgen_logs import answers_in
from fairlap.scenarios.load.system_under_test import Issue
from sleeping_issue import SERVICE_S, answers, request, sleeping

pytest.importorskip("mlperf_loadgen", reason="`make test` installs it and runs this")
pytestmark = pytest.mark.sanitized  # no code of ours is native here

ITEMS = 20
OUTPUTS = {"item": (), "twice": (1,)}


def test_answers_that_are_logged_while_it_is_timed_are_compared_with_those_for_accuracy(tmp_path: Path) -> None:
    run_loadgen(request("server", tmp_path, accuracy=True), ITEMS, sleeping(0))
    accuracy = answers_in(tmp_path, OUTPUTS)
    result = run_loadgen(request("server", tmp_path, logged_answers=30), ITEMS, sleeping(0))
    timed = answers_in(tmp_path, OUTPUTS)
    found = audit_answers_while_timed(timed, accuracy)
    assert result.valid
    assert 0 < found.compared == len(timed) < result.samples
    assert (found.unknown, found.largest_difference) == (0, 0.0)

    honest = sleeping(0)
    cheating = Issue(honest.serve, lambda items, count: [np.zeros(2, np.float32)] * count)
    run_loadgen(request("server", tmp_path, logged_answers=30), ITEMS, cheating)
    assert audit_answers_while_timed(answers_in(tmp_path, OUTPUTS), accuracy).largest_difference == 1.0
    assert audit_answers_while_timed(timed, accuracy[:0]).unknown == len(timed)


@pytest.mark.parametrize("scenario", ["single-stream", "offline"])
def test_a_contestant_that_keeps_answers_is_much_faster_on_a_repeated_item(scenario: Any, tmp_path: Path) -> None:
    kept: set[int] = set()

    def caching(items: Sequence[int]) -> list[int]:
        if not kept.issuperset(items):
            time.sleep(5 * SERVICE_S)
        kept.update(items)
        return list(items)

    found = audit_repeated_item(str(tmp_path), 70, Issue([caching], answers), scenario=scenario)
    assert (found.pairs, found.queries) == (10, 6)
    assert found.keeps_answers
    assert not found.is_within_mlperf


def test_an_honest_contestant_passes_the_audit_of_a_repeated_item(tmp_path: Path) -> None:
    asked: list[int] = []
    found = audit_repeated_item(str(tmp_path), 70, sleeping(before=asked.extend))
    assert found.low <= found.ratio <= found.high
    assert not found.keeps_answers
    assert len(asked) == 10 * 2 * 6
    assert sorted(asked.count(item) for item in set(asked)) == [1] * 60 + [6] * 10


def test_the_audit_of_a_repeated_item_needs_items_for_all_of_its_runs(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="50"):
        audit_repeated_item(str(tmp_path), 49, sleeping(0))
