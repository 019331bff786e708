"""A block runs in a process of its own, which reports everything, ends when its parent is gone, and can be lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest
from fairlap.machine.programs.processes import process_ids
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_drawing import on_cores
from fairlap.scenarios.process_result import ProcessResult
from fairlap.sweep import node
from fairlap.sweep.block import BlockReport, BlockTask, run_block
from fairlap.sweep.block_process import BlockLost, report_of
from fairlap.sweep.machine_here import Machine, machine_here
from fairlap.sweep.requests import plans_of
from machine_marks import needs_proc
from processes_seen import content, wait_until

pytestmark = [pytest.mark.sanitized, needs_proc]

CORES = tuple(sorted(os.sched_getaffinity(0)))


def a_plan(folder: Path, seconds: float = 0.02) -> Plan:
    file = folder / "small.toml"
    contestants = 'contestants = ["python:call=os.getpid", "python:call=os.getppid"]'
    file.write_text(f'models = ["callable"]\n{contestants}\nblocks = 3\nthreads = 1\nseconds = {seconds}\nseed = 1\n')
    return on_cores(plans_of([file], lambda _line: None)["small"], CORES)


def reported(task: BlockTask) -> BlockReport:
    return msgspec.msgpack.decode(report_of(msgspec.msgpack.encode(task), os.environ), type=BlockReport)


def test_the_report_has_every_process_of_the_block_with_its_samples(tmp_path: Path) -> None:
    plan = a_plan(tmp_path)
    report = reported(BlockTask(plan, 1, 100.0))
    assert report.code == ""
    assert {(each.block, each.outcome) for each in report.processes} == {(1, "finished")}
    assert {each.contestant for each in report.processes} == {name.text for name in plan.contestants}
    for each in report.processes:
        process = msgspec.json.decode(each.process, type=ProcessResult)
        assert process.began_s >= 100.0
        assert len(each.samples["wall_ns"]) == 8 * process.headline.samples
    assert report.wall_s["whole"] > 0
    assert report.roofs is not None


def test_a_machine_without_the_cores_of_a_block_refuses_it(tmp_path: Path) -> None:
    elsewhere = on_cores(a_plan(tmp_path), (1023,))
    report = run_block(elsewhere, 0)
    assert (report.code, report.processes) == ("E_SWEEP", ())
    assert "1023" in report.message


def test_a_process_that_is_killed_is_a_lost_block(tmp_path: Path) -> None:
    task = BlockTask(a_plan(tmp_path, seconds=60.0), 0)
    marked = {**os.environ, "FAIRLAP_TEST_MARK": "lost"}
    killer = threading.Thread(target=lambda: os.kill(the_block_process("lost"), signal.SIGKILL))
    killer.start()
    with pytest.raises(BlockLost) as lost:
        report_of(msgspec.msgpack.encode(task), marked)
    killer.join()
    assert "SIGKILL" in str(lost.value)


@pytest.mark.slow
def test_a_process_whose_parent_is_killed_ends_with_its_contestants(tmp_path: Path) -> None:
    task = msgspec.msgpack.encode(BlockTask(a_plan(tmp_path, seconds=60.0), 0))
    (tmp_path / "task").write_bytes(task)
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import os, pathlib, sys; from fairlap.sweep.block_process import report_of;"
            f" report_of(pathlib.Path({str(tmp_path / 'task')!r}).read_bytes(), os.environ)",
        ],
        env={**os.environ, "FAIRLAP_TEST_MARK": "orphan"},
    )
    the_block_process("orphan")
    wait_until(lambda: len(marked("orphan")) >= 4)  # the parent, the block and its contestants
    parent.kill()
    parent.wait()
    wait_until(lambda: not marked("orphan"))


def test_the_environment_of_a_block_is_that_of_the_node_without_secrets_and_what_ray_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The parent of this process stands for the node."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    asked = subprocess.run(
        [
            sys.executable,
            "-c",
            "import os, sys; os.environ['OMP_NUM_THREADS'] = '1'; from fairlap.launch.cluster import node_process;"
            " print(sorted(node_process.environment_of_node()))",
        ],
        env={**os.environ},
        capture_output=True,
        text=True,
        check=True,
    )
    seen = set(msgspec.json.decode(asked.stdout.replace("'", '"').encode()))
    assert not {name for name in seen if name.startswith(("RAY_", "FAIRLAP_STORE"))}
    with_parents = Path("/proc/self/environ").read_bytes().split(b"\0")
    started_with = {os.fsdecode(each.partition(b"=")[0]) for each in with_parents if each}
    assert ("OMP_NUM_THREADS" in seen) == ("OMP_NUM_THREADS" in started_with)
    assert ("CUDA_VISIBLE_DEVICES" in seen) == ("CUDA_VISIBLE_DEVICES" in started_with)


def test_a_machine_describes_itself_in_the_environment_that_it_is_given() -> None:
    found = msgspec.msgpack.decode(node.describe(), type=Machine)
    assert found.cores == CORES
    assert found.facts["cores"]
    assert "variable OMP_WAIT_POLICY" not in machine_here({}).facts
    assert machine_here({"OMP_WAIT_POLICY": "active"}).facts["variable OMP_WAIT_POLICY"] == "active"


@pytest.mark.slow
def test_a_block_runs_with_the_priority_of_its_node_where_that_is_allowed() -> None:
    """The parent of the process that calls stands for the node."""
    nice = "os.nice(7); from fairlap.sweep import node; from fairlap.sweep.machine_here import Machine"
    shown = "print(msgspec.msgpack.decode(node.describe(), type=Machine).niceness)"
    asked = subprocess.run(
        [sys.executable, "-c", f"import os, msgspec; {nice}; {shown}"], capture_output=True, text=True, check=True
    )
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert int(asked.stdout) == (own if os.getuid() == 0 else own + 7)


def marked(mark: str) -> list[int]:
    return [pid for pid in process_ids() if f"FAIRLAP_TEST_MARK={mark}".encode() in content(pid, "environ")]


def the_block_process(mark: str) -> int:
    program = b"fairlap.sweep.block_process"
    return wait_until(lambda: [pid for pid in marked(mark) if program in content(pid, "cmdline")])[0]
