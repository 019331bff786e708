"""What the adapters of Paddle, MXNet, JAX and tinygrad refuse and report without importing their frameworks."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from fairlap.frameworks.adapter_parts.jax_settings import cache_in_force, environment_for
from fairlap.frameworks.contract import Settings, Unsupported
from fairlap.frameworks.libraries.tinygrad import _compiler, _threads
from fairlap.frameworks.registry import framework_named
from fairlap.models.registry import find
from fairlap.models.workload import Workload
from fairlap.request.work import Precision


@pytest.mark.parametrize(
    ("name", "precision", "settings", "why"),
    [
        ("paddle", "bf16", {}, "paddle has no bf16: its products do not take it"),
        ("mxnet", "bf16", {}, "mxnet has no bf16: its products and normalisations do not take it"),
        ("paddle", "fp32", {"variant": "hybrid"}, "paddle has no variant 'hybrid'"),
        ("mxnet", "fp32", {"options": {"mode": "fast"}}, "mxnet has no option 'mode'; it has none"),
    ],
)
def test_what_it_cannot_do_is_refused_with_the_reason(
    name: str, precision: Precision, settings: dict[str, Any], why: str
) -> None:
    found = find("mlp")
    work = Workload(found.spec, found.package, 1, "infer", precision, weights={}, inputs={})
    with pytest.raises(Unsupported) as refused:
        framework_named(name)().prepare(work, Settings(1, **settings), lambda _: nullcontext())
    assert str(refused.value) == why


@pytest.mark.parametrize("name", ["paddle", "mxnet"])
def test_the_threads_asked_for_stand_in_the_environment_before_it_starts(name: str) -> None:
    variables = framework_named(name).environment_for(Settings(threads=3))
    assert variables["OMP_NUM_THREADS"] == "3"


def reported(folder: str, used: str | None, monkeypatch: pytest.MonkeyPatch) -> str:
    """In a worker of a race whose caches are in ``folder``."""
    with monkeypatch.context() as worker:
        for name, value in environment_for(Settings(1, cache_folder=folder)).items():
            worker.setenv(name, value)
        return cache_in_force(used)


def test_the_new_cache_of_each_race_is_the_same_setting_wherever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (reported(folder, folder, monkeypatch) for folder in ("/tmp/one/caches/0", "/tmp/other/caches/1"))
    assert one == other
    assert "/" not in one


def test_a_cache_that_is_not_that_of_the_race_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reported("/tmp/one", "/home/me/cache", monkeypatch) == "/home/me/cache"
    assert reported("", "/home/me/cache", monkeypatch) == "/home/me/cache"
    assert reported("/tmp/one", None, monkeypatch) == "none"


def test_without_clang_it_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(Unsupported, match="clang"):
        _compiler()


def test_one_thread_of_two_is_reported_in_words_and_passes_for_no_number() -> None:
    assert _threads(1, 1) == "1"
    assert _threads(2, 1).startswith("1 of 2: ")
    assert _threads(2, 0) == "cannot be read"
