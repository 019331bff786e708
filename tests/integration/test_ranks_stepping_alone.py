"""Delays that are planted in ranks are found where they were planted, and in their size."""

from __future__ import annotations

from pathlib import Path

import pytest
from fairlap.race.planning.plan import Limits
from fairlap.request.fields.scale import Scale
from fairlap.request.fields.training import Sgd, Training
from fairlap.request.work import Work
from machine_marks import needs_proc
from one_block import processes_of_one_block
from ranked_numpy import install_ranked

pytestmark = [needs_proc, pytest.mark.timeout(300), pytest.mark.slow]

PLANTED_NS = 20e6
WITHIN = 0.1
QUICK = Limits(start_s=40, prepare_s=60, answer_s=30, measure_s=60)


@pytest.fixture(autouse=True)
def ranked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_ranked(tmp_path / "installed", monkeypatch)


TRIES = 3


def stepped(variant: str) -> tuple[float, list[float]]:
    """Time the step together and each rank's alone, in the turn that other programs disturbed least."""
    name = f"ranked-numpy:{variant}" if variant else "ranked-numpy"
    work = Work("digits", 8, "train", training=Training(Sgd(lr=0.05)), scale=Scale(1, 2))
    result = processes_of_one_block(name, work, seconds=2.0, limits=QUICK)[name]
    assert (result.outcome, result.message) == ("finished", "")
    assert result.ranks is not None
    found = result.ranks.stepped
    assert not found.why
    return min(found.together_ns), [min(rank) for rank in found.alone_ns]


def exchange_ns(variant: str) -> float:
    together, alone = stepped(variant)
    return together - max(alone)


def is_size_of_planted(difference_ns: float) -> bool:
    return abs(difference_ns - PLANTED_NS) < WITHIN * PLANTED_NS


def test_a_delay_before_every_exchange_is_found_as_communication() -> None:
    found = []
    for _ in range(TRIES):  # what else runs on the machine can only lengthen a step
        found.append(exchange_ns("slow-exchange") - exchange_ns(""))
        if is_size_of_planted(found[-1]):
            return
    pytest.fail(f"instead of {PLANTED_NS:.3g} ns, the exchange took longer by {found}")


def test_a_rank_that_is_slow_alone_is_found_as_a_straggler_and_not_as_communication() -> None:
    found = []
    for _ in range(TRIES):
        together, alone = stepped("slow-rank")
        found.append((alone[1] - alone[0], together - max(alone)))
        if is_size_of_planted(found[-1][0]) and found[-1][1] < WITHIN * PLANTED_NS:
            return
    pytest.fail(f"the other rank is faster by, and the exchange takes: {found}")
