"""The real frameworks' collective operations give the right sums, and are timed on all ranks."""

from __future__ import annotations

import pytest
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.request.fields.scale import COLLECTIVES
from fairlap.request.names import Contestants
from fairlap.scenarios.collectives.race.collectives_run import MEMORY, CollectivesPlan, run_collectives
from fairlap.scenarios.collectives.results.collectives_result import result_of
from fairlap.scenarios.ranks.ranks_messages import RankLimits
from machine_marks import needs_proc

pytestmark = [needs_proc, pytest.mark.timeout(600), pytest.mark.slow]

SIZES = (4000, 400_000)


@pytest.mark.parametrize("framework", ["torch", "jax", "tensorflow", "mpi"])
def test_results_are_right_and_timed(framework: str) -> None:
    if not is_importable(framework_named(framework)):
        pytest.skip(f"{framework} is not installed here; `make test` installs it and runs this")
    plan = CollectivesPlan(2, 1, COLLECTIVES, SIZES, 1, 0.05, 1, RankLimits())
    run = run_collectives(Contestants(framework), plan, lambda _: None)
    assert run.failures == {}
    assert "2 ranks" in run.exchange[framework]
    result = result_of(run)
    timed = {(row.contestant, row.operation, row.bytes) for row in result.rows if row.time_ns is not None}
    lacking = {"broadcast"} if framework == "tensorflow" else set()
    expected = {(framework, operation, size) for operation in COLLECTIVES if operation not in lacking for size in SIZES}
    assert timed == expected | {(MEMORY, "copy", size) for size in SIZES}
    assert {row.operation for row in result.rows if row.absent} == lacking


def test_a_framework_without_ranks_is_a_failure_of_its_own() -> None:
    plan = CollectivesPlan(2, 1, ("all_reduce",), SIZES[:1], 1, 0.05, 1, RankLimits())
    run = run_collectives(Contestants("onnxruntime"), plan, lambda _: None)
    assert run.codes == {"onnxruntime": "E_UNSUPPORTED"}
    assert run.trials == []
