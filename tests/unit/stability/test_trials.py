"""Trials find answers that change from call to call, with threads or with the batch, and those that do not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from example_installed import install_example
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.request.names import Contestants, Device
from fairlap.request.race_request import RaceRequest
from fairlap.stability import trials
from fairlap.stability.table import StabilityRow
from fairlap.stability.trials import stability_rows
from gpu_in_workers import put_gpu_into_workers
from installed_package import install_frameworks

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, StabilityRow]]:
    folder = tmp_path_factory.mktemp("stability")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("FAIRLAP_CACHE", str(folder / "cache"))
        patched.setattr(trials, "_SECONDS", 0.01)
        install_frameworks(folder / "package", patched, {"unstable": "unstable_numpy:UnstableNumpy"})
        names = Contestants("unstable,unstable:call,unstable:threads,unstable:batch")
        threads = min(2, len(os.sched_getaffinity(0)))
        plan = plan_of(RaceRequest(models=("softmax",), contestants=names, batch=3, threads=threads, blocks=1, seed=1))
        yield {row.contestant: row for row in stability_rows(plan, lambda _: None)}


def test_answers_that_repeat_are_equal_in_every_way(rows: dict[str, StabilityRow]) -> None:
    honest = rows["unstable"]
    assert not honest.absent
    assert [found.equal for found in honest.checks if not found.why] == [True] * (3 + (os.cpu_count() != 1))
    assert honest.digits_kept is not None
    assert honest.digits_kept > 5
    assert honest.time_ns is not None
    assert honest.time_ns > 0


@pytest.mark.parametrize("which", ["threads", "batch"])
def test_what_changes_with_threads_or_with_the_batch_is_found(which: str, rows: dict[str, StabilityRow]) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core is available")
    found = rows[f"unstable:{which}"]
    differs = {"again": found.again, "process": found.process, "threads": found.threads, "batch": found.batched}
    assert [name for name, each in differs.items() if each.equal is False] == [which]
    assert 0 < (differs[which].relative or 0) < 1e-6


def test_answers_on_a_gpu_are_those_of_the_reference_and_repeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(trials, "_SECONDS", 0.01)
    install_example(tmp_path / "installed", monkeypatch)
    put_gpu_into_workers(tmp_path, monkeypatch)
    names = Contestants("example")
    request = RaceRequest(
        models=("mlp",), contestants=names, batch=2, threads=1, blocks=1, seed=1, device=Device("cuda")
    )
    [row] = stability_rows(plan_of(request), lambda _: None)
    assert not row.absent
    assert [found.equal for found in (row.again, row.process)] == [True, True]


def test_what_changes_from_call_to_call_is_found(rows: dict[str, StabilityRow]) -> None:
    assert rows["unstable:call"].again.equal is False
