"""What is reported of JAX's cache on disk."""

from __future__ import annotations

import pytest
from fairlap.frameworks.adapter_parts.jax_settings import cache_in_force, environment_for
from fairlap.frameworks.contract import Settings


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
