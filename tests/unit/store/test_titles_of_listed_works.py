"""Programs and people get one name for what a run raced."""

from __future__ import annotations

import pytest
from fairlap.store.runs.listed_works import with_titles
from fairlap.store.search import Placed, RunSummary


@pytest.mark.parametrize(
    ("work", "framework", "title"),
    [
        ("callable · infer · fp32 · batch 1", "command", "commands"),
        ("mlp · infer · fp32 · batch 1", "torch", "mlp · infer · fp32 · batch 1"),
    ],
)
def test_works_that_are_no_model_have_the_title_that_people_read(work: str, framework: str, title: str) -> None:
    run = RunSummary(
        run="20260102-030405-abc",
        began_at="",
        state="finished",
        works=(work,),
        work_ids=("1",),
        data="",
        contestants=("a", "b"),
        frameworks=(framework,),
        recorded_processes=2,
        planned_processes=2,
        ended_early="",
        fairlap="0",
        placed=(Placed(work, "a", "1"),),
    )
    titled = with_titles(run)
    assert (titled.works, titled.placed[0].work) == ((title,), title)
