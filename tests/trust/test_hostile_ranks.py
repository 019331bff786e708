"""Ranks that do not share their work as they should are disqualified, and what they do is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fairlap.race.planning.plan import Limits
from fairlap.request.fields.scale import Scale
from fairlap.request.fields.training import AdamW, Sgd, Training
from fairlap.request.work import Work
from fairlap.scenarios.process_result import ProcessResult
from machine_marks import needs_proc
from one_block import processes_of_one_block
from ranked_numpy import install_ranked

pytestmark = [needs_proc, pytest.mark.timeout(300)]

QUICK = Limits(start_s=40, prepare_s=60, answer_s=30, measure_s=30)
TRAININGS = {"sgd": Training(Sgd(lr=0.05, momentum=0.9)), "adamw": Training(AdamW(lr=0.001))}
NAMED = {
    "no-exchange": "do not exchange their gradients",
    "adds-up": "add up their gradients",
    "halves-twice": "divide their gradients twice",
    "same-part": "read the same part",
}
UNNAMED = ("drops-a-sample", "stale-rank")


@pytest.fixture(autouse=True)
def ranked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_ranked(tmp_path / "installed", monkeypatch)


def trained(variant: str, training: str = "sgd", *, ranks: int = 2, batch: int = 8) -> ProcessResult:
    name = f"ranked-numpy:{variant}" if variant else "ranked-numpy"
    work = Work("digits", batch, "train", training=TRAININGS[training], scale=Scale(1, ranks))
    return processes_of_one_block(name, work, seconds=0.05, limits=QUICK)[name]


@pytest.mark.slow
@pytest.mark.parametrize("training", TRAININGS)
@pytest.mark.parametrize("variant", NAMED)
def test_a_wrong_exchange_is_disqualified_and_named(variant: str, training: str) -> None:
    result = trained(variant, training)
    assert (result.outcome, result.code) == ("disqualified", "E_TRAINING")
    assert NAMED[variant] in result.message


@pytest.mark.slow
@pytest.mark.parametrize("training", TRAININGS)
@pytest.mark.parametrize("variant", UNNAMED)
def test_ranks_that_end_elsewhere_are_disqualified(variant: str, training: str) -> None:
    result = trained(variant, training)
    assert (result.outcome, result.code) == ("disqualified", "E_TRAINING")
    assert any(not error.right for error in result.errors)


@pytest.mark.slow
def test_a_rank_with_other_weights_is_disqualified() -> None:
    assert trained("other-weights").code == "E_WEIGHTS"


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 4])
def test_honest_ranks_are_not_disqualified(ranks: int) -> None:
    if ranks > len(os.sched_getaffinity(0)):
        pytest.skip("every rank takes a core")
    result = trained("", ranks=ranks)
    assert (result.outcome, result.message) == ("finished", "")
    assert result.ranks is not None
    assert len(result.ranks.hosts) == len(result.ranks.memory) == ranks
    assert {error.when for error in result.errors} == {"before", "changed inputs", "after", "timed call"}
