"""Options of a contestant's process reach it, are read back from it, and are refused where they cannot be."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from fairlap.errors import InvalidRequest
from fairlap.frameworks.contract import Settings
from fairlap.frameworks.registry import framework_named
from fairlap.launch.runners import NoNode, NotInstalled, Runner, require_known, runners_for
from fairlap.machine import allocators
from fairlap.machine.root import Root
from fairlap.request.names import Contestants, contestant_named
from fairlap.worker.process_options import process_options_in, without_process_options

ON_GLIBC = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="allocators are chosen through glibc")


def runner_of(contestant: str, tmp_path: Path, threads: int = 1) -> Runner:
    with ExitStack() as stack:
        [runner] = runners_for(Contestants(contestant), threads, "cpu", tmp_path, stack, lambda _: None)
    return runner


def in_force(allocator: str, **variables: str) -> str:
    """In a new process: what is in force, or why it is not."""
    code = f"""
from fairlap.frameworks.contract import Unsupported
from fairlap.worker.process_options import ProcessOptions
try:
    print(ProcessOptions({allocator!r}).in_force().get("allocator", ""))
except Unsupported:
    print("refused")
"""
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "LD_PRELOAD"))}
    done = subprocess.run([sys.executable, "-c", code], env={**bare, **variables}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow_but("keep")
@ON_GLIBC
@pytest.mark.sanitized  # sanitizers bring an allocator
@pytest.mark.parametrize("allocator", ["keep", "one-arena"])
def test_settings_of_the_c_library_are_in_force_in_a_process_that_has_them_and_refused_in_others(
    allocator: str,
) -> None:
    assert in_force(allocator, **process_options_in({"allocator": allocator}).environment()) == allocator
    assert in_force(allocator) == "refused"


@ON_GLIBC
@pytest.mark.sanitized  # sanitizers bring an allocator
def test_an_allocator_that_was_not_preloaded_is_refused() -> None:
    assert in_force("jemalloc") == "refused"
    assert in_force("system") == ""


@ON_GLIBC
@pytest.mark.parametrize("allocator", list(allocators.LIBRARIES))
def test_a_preloaded_allocator_is_read_back_from_the_process(allocator: str) -> None:
    file = allocators.allocator_file(allocator)
    if file is None:
        pytest.skip(f"{allocator} is not installed here")
    variables = process_options_in({"allocator": allocator}).environment()
    assert in_force(allocator, **variables) == f"{allocator} ({file.name})"
    assert in_force("system", **variables) == f"{allocator} ({file.name})"  # which another program may have preloaded


def test_an_allocator_that_is_not_installed_is_the_outcome_of_its_contestant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allocators, "library_folders", list)
    missing = runner_of("torch:allocator=jemalloc", tmp_path).missing
    assert isinstance(missing, NotInstalled)
    assert missing.code == "E_NOT_INSTALLED"


@pytest.mark.parametrize(("allocator", "switched"), [("jemalloc", True), ("keep", False), ("system", False)])
def test_openvino_s_threads_library_is_told_of_another_allocator(allocator: str, *, switched: bool) -> None:
    settings = Settings(1, options={"allocator": allocator})
    assert ("TBB_ENABLE_SANITIZERS" in framework_named("openvino").environment_for(settings)) is switched


@pytest.mark.parametrize("option", ["allocator=slow", "numa=near", "numa=-1"])
def test_a_value_that_no_machine_has_is_refused_at_once(option: str) -> None:
    with pytest.raises(InvalidRequest):
        require_known((contestant_named(f"torch:{option}"),))


def test_no_framework_is_given_the_options_of_its_process() -> None:
    assert without_process_options({"allocator": "keep", "numa": "0", "mode": "x"}) == {"mode": "x"}


def test_the_library_of_an_address_is_found_in_the_maps_of_the_process(tmp_path: Path) -> None:
    maps = tmp_path / "proc/self/maps"
    maps.parent.mkdir(parents=True)
    maps.write_text(
        "7f00-7f80 r-xp 00000000 08:01 1                          /usr/lib/libjemalloc.so.2\n"
        "7f80-7fff rw-p 00000000 00:00 0 \n"
    )
    path = allocators.file_mapped_at(0x7F10, Root(tmp_path))
    assert (path, allocators.name_of(path)) == ("/usr/lib/libjemalloc.so.2", "jemalloc")
    assert allocators.file_mapped_at(0x7F90, Root(tmp_path)) == ""


def nodes(monkeypatch: pytest.MonkeyPatch, **cores: tuple[int, ...]) -> None:
    by_node = {int(name.removeprefix("node")): own for name, own in cores.items()}
    monkeypatch.setattr("fairlap.launch.runners.available_cores_by_node", lambda: by_node)


def test_processes_run_on_the_cores_of_their_node_drawn_ones_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes(monkeypatch, node0=(0, 1, 2, 3), node1=(4, 5, 6, 7))
    runner = runner_of("torch:numa=1", tmp_path, threads=2)
    assert runner.missing is None
    assert runner.cores((1, 7)) == (4, 7)
    assert runner.cores(tuple(range(8))) == (4, 5, 6, 7)
    assert runner_of("torch", tmp_path).cores((1, 7)) == (1, 7)


@pytest.mark.parametrize(("node", "threads"), [(2, 1), (1, 4)])
def test_a_node_that_is_not_here_or_too_small_is_the_outcome_of_its_contestant(
    node: int, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes(monkeypatch, node0=(0, 1, 2, 3), node1=(4, 5))
    missing = runner_of(f"torch:numa={node}", tmp_path, threads).missing
    assert isinstance(missing, NoNode)
    assert missing.code == "E_NUMA_NODE"
