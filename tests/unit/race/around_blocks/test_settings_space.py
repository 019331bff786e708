"""The space of a search has what this machine offers, and says what it leaves out and why."""

from __future__ import annotations

import os
import platform
from collections.abc import Collection
from pathlib import Path

import pytest
from fairlap.machine.root import Root
from fairlap.race.around_blocks.settings_search import alternatives
from fairlap.race.around_blocks.settings_space import space_of
from fairlap.request.names import contestant_named

ON_GLIBC = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="allocators are chosen through glibc")


@pytest.fixture(autouse=True)
def no_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlap.machine.allocators.library_folders", list)


def machine_with_nodes(folder: Path, *cores: str) -> Root:
    nodes = folder / "sys/devices/system/node"
    for number, listed in enumerate(cores):
        (nodes / f"node{number}").mkdir(parents=True)
        (nodes / f"node{number}/cpulist").write_text(f"{listed}\n")
    (nodes / "online").write_text(f"0-{len(cores) - 1}\n")
    return Root(folder)


def may_use(cores: Collection[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(cores))


def test_a_given_setting_stays_and_is_named_among_what_is_left_out() -> None:
    space = space_of(contestant_named("torch==2.13.0:best:memory_format=channels_last"), 4, "cpu")
    assert space.values["variant"][0] == "compile"
    assert space.values["threads"] == ("2", "1")
    assert "memory_format" not in space.values
    assert space.left_out["memory_format"] == "memory_format is given"


def test_a_given_setting_is_not_changed_by_the_value_of_another_one() -> None:
    space = space_of(contestant_named("tensorflow:best:interop_threads=2"), 4, "cpu")
    assert space.values["variant"] == ("graph", "xla")
    assert "variant=graph:interop_threads=4" in space.left_out


def test_on_a_gpu_settings_of_the_cpu_are_left_out() -> None:
    space = space_of(contestant_named("onnxruntime:best"), 1, "cuda:0")
    assert space.values.keys() == {"variant", "optimization"}
    assert {"allocator", "numa", "threads"} <= space.left_out.keys()


@ON_GLIBC
def test_an_allocator_is_tried_where_its_library_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "libtcmalloc_minimal.so.4").touch()
    monkeypatch.setattr("fairlap.machine.allocators.library_folders", lambda: [tmp_path])
    space = space_of(contestant_named("torch:best"), 2, "cpu")
    assert space.values["allocator"] == ("tcmalloc", "one-arena")
    assert {"allocator=jemalloc", "allocator=mimalloc", "allocator=keep"} <= space.left_out.keys()


@ON_GLIBC
def test_keeping_freed_memory_is_tried_only_where_not_every_contestant_does() -> None:
    name = contestant_named("torch:best")
    assert "keep" in space_of(name, 2, "cpu", "as-found").values["allocator"]
    assert "keep" not in space_of(name, 2, "cpu", "controlled").values["allocator"]


def test_threads_between_operations_are_tried_only_on_the_cores_of_the_race() -> None:
    name = contestant_named("onnxruntime:best")
    assert space_of(name, 4, "cpu").values["interop_threads"] == ("4",)
    for threads, left_out in ((4, space_of(name, 4, "cpu", "as-found")), (1, space_of(name, 1, "cpu"))):
        assert "interop_threads" not in left_out.values
        assert f"interop_threads={threads}" in left_out.left_out


def test_nodes_are_tried_where_there_are_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_use(range(8), monkeypatch)
    root = machine_with_nodes(tmp_path, "0-3", "4-7")
    assert space_of(contestant_named("torch:best"), 4, "cpu", root=root).values["numa"] == ("0", "1")


def test_a_node_that_is_too_small_for_the_threads_is_tried_with_fewer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_use([0, 1, 2, 4, 5], monkeypatch)
    space = space_of(contestant_named("torch:best"), 5, "cpu", root=machine_with_nodes(tmp_path, "0-3", "4-7"))
    assert space.values["numa"] == ("0:threads=3", "1:threads=2")
    [first, _] = alternatives({"numa": space.values["numa"]})
    assert dict(first) == {"numa": "0", "threads": "3"}


def test_one_node_is_no_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_use(range(4), monkeypatch)
    space = space_of(contestant_named("torch:best"), 4, "cpu", root=machine_with_nodes(tmp_path, "0-3"))
    assert "numa" not in space.values
    assert "numa" in space.left_out


def test_first_values_of_all_settings_come_before_second_ones() -> None:
    found = alternatives({"a": ("1", "2:c=3"), "b": ("4",)})
    assert found == [(("a", "1"),), (("b", "4"),), (("a", "2"), ("c", "3"))]
