"""Under controlled conditions each rank has cores of its own; as found, the kernel may put two ranks on one core."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from fairlap.request.fields.scale import Scale
from fairlap.request.fields.training import Sgd, Training
from fairlap.request.work import Conditions, Work
from fairlap.worker.ranks.placement import CORES, cores_for
from one_block import processes_of_one_block
from ranked_numpy import install_ranked

RANKS = 2
AVAILABLE = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []

pytestmark = [
    pytest.mark.skipif(len(AVAILABLE) < RANKS, reason="each rank needs a core"),
    pytest.mark.timeout(120),
]


def settings(conditions: Conditions) -> dict[str, str]:
    work = Work("digits", 8, "train", training=Training(Sgd(lr=0.05)), scale=Scale(1, RANKS))
    process = processes_of_one_block("ranked-numpy", work, conditions=conditions)["ranked-numpy"]
    assert process.outcome == "finished", process.message
    return process.in_force


@pytest.mark.slow
def test_ranks_have_cores_of_their_own_only_under_controlled_conditions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_ranked(tmp_path, monkeypatch)
    controlled, as_found = settings("controlled"), settings("as-found")
    first, second = (each.partition(": ")[2] for each in controlled["cores_found"].split("; "))
    assert first != second
    assert {int(first), int(second)} <= set(AVAILABLE)
    assert controlled["cores"] == controlled["cores_found"]
    assert as_found["cores_found"] == ",".join(map(str, AVAILABLE))
    assert "cores" not in as_found


def test_ranks_share_out_the_cores_that_there_are() -> None:
    assert cores_for(2, 2, {7, 1, 4, 0}) == {CORES: "0,1/4,7"}
    assert cores_for(2, 2, {0, 1, 2}) == {}
