"""The plans of a sweep depend on the request files alone, and on nothing of the machine that draws them."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from fairlap.errors import InvalidRequest
from fairlap.race.plan import Plan, on_cores
from fairlap.sweep.requests import plans_of

REQUEST = """
models = ["mlp"]
contestants = ["python:call=os.getpid", "python:call=os.getppid"]
blocks = 6
threads = 2
seed = 3
"""


def plans(folder: Path, text: str = REQUEST) -> dict[str, Plan]:
    file = folder / "small.toml"
    file.write_text(text.replace('"mlp"', '"callable"'))
    return plans_of([file], lambda _line: None)


def test_the_plan_is_the_same_whatever_cores_the_drawing_machine_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for cores in ({0}, {0, 1, 2, 3, 4, 5, 6, 7}):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _pid, cores=cores: cores)
        found.append(plans(tmp_path)["small"])
    assert found[0] == found[1]
    assert found[0].threads == 2
    assert len(found[0].blocks) == 6


def test_on_other_cores_a_plan_changes_in_nothing_but_the_cores(tmp_path: Path) -> None:
    plan = plans(tmp_path)["small"]
    moved = on_cores(plan, (3, 5, 8, 9))
    assert moved == on_cores(plan, (3, 5, 8, 9))
    assert moved.available_cores == (3, 5, 8, 9)
    assert all(len(block.cores) == 2 and set(block.cores) <= {3, 5, 8, 9} for block in moved.blocks)
    assert len({block.cores for block in moved.blocks}) > 1
    back = [msgspec.structs.replace(block, cores=()) for block in moved.blocks]
    assert back == [msgspec.structs.replace(block, cores=()) for block in plan.blocks]
    with pytest.raises(InvalidRequest):
        on_cores(plan, (3,))


def test_each_scale_gets_the_cores_that_it_takes(tmp_path: Path) -> None:
    plan = plans(tmp_path, REQUEST.replace("threads = 2", "threads = [1, 3]"))["small"]
    moved = on_cores(plan, (4, 5, 6, 7))
    scales = [(moved.works[block.work].scale, len(block.cores)) for block in moved.blocks]
    assert {(scale.threads, cores) for scale, cores in scales if scale is not None} == {(1, 1), (3, 3)}
    with pytest.raises(InvalidRequest):
        on_cores(plan, (4, 5))


@pytest.mark.parametrize(
    "change",
    [
        ("seed = 3", 'processes = 2\nhosts = ["a", "b"]'),
        ("blocks = 6", ""),
        ("threads = 2", ""),
        ("seed = 3", 'budget = "10s"'),
        ("seed = 3", "target = 0.01"),
        ("seed = 3", 'output = ["x.json"]'),
        ("seed = 3", 'price = "1/h"'),
        ("seed = 3", "min_memory = true"),
        ("seed = 3", "profile = true"),
        ("seed = 3", "recompile = 8"),
        ('"python:call=os.getpid"', '"torch:best"'),
        ('"mlp"', '"conv-*"'),
    ],
)
def test_a_request_that_depends_on_the_machine_or_on_an_order_is_refused(
    tmp_path: Path, change: tuple[str, str]
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        plans(tmp_path, REQUEST.replace(*change))
    assert refused.value.code == "E_SWEEP"
    assert len(str(refused.value).splitlines()) == 1


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    files = [tmp_path / "small.toml", tmp_path / "other" / "small.toml"]
    for file in files:
        file.write_text(REQUEST.replace('"mlp"', '"callable"'))
    with pytest.raises(InvalidRequest) as refused:
        plans_of(files, lambda _line: None)
    assert refused.value.code == "E_SWEEP"
