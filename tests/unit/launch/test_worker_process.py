"""The life of a worker: what it answers, what it measures, and that it ends with its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.launch.started_worker import python_worker
from fairlap.launch.worker_lost import WorkerLost
from fairlap.launch.worker_process import WorkerProcess
from fairlap.machine.programs.processes import process_stat
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import hash_of
from fairlap.scenarios.learning.training_messages import Epoch
from machine_marks import needs_proc
from processes_seen import wait_until_empty
from workers_of_fake import Files, belonging_to, environment, left_of, nothing_left_of

pytestmark = [pytest.mark.sanitized, needs_proc]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path).write()


def test_a_worker_prepares_answers_measures_and_ends(files: Files, tmp_path: Path) -> None:
    answer, changed = tmp_path / "answer.safetensors", tmp_path / "changed-answer.safetensors"
    with nothing_left_of(WorkerProcess(python_worker(), environment=environment())) as worker:
        prepared = worker.prepare(files.request(), within_s=60)
        seconds = worker.answer("inputs", answer, within_s=60).seconds
        worker.answer("changed", changed, within_s=60)
        measured, samples_ns = worker.measure(samples=50, calls_per_sample=4, within_s=60)
        worker.answer("inputs", answer, within_s=60)
        memory = worker.quit().memory.bytes
    assert (prepared.version, prepared.in_force["threads"]) == ("1.2", "1")
    assert prepared.weights_hash == hash_of({"w": files.w})
    np.testing.assert_allclose(safetensors.read(answer)["y"], files.x @ files.w)
    np.testing.assert_allclose(safetensors.read(changed)["y"], -files.x @ files.w)
    assert list(worker.phases_s) == [
        "interpreter",
        "numpy",
        "fairlap",
        "import",
        "build",
        "compile",
        "bind",
        "first_call",
    ]
    assert worker.phases_s["first_call"] == seconds > 0
    assert list(samples_ns) == ["wall_ns"]
    assert samples_ns["wall_ns"].dtype == np.float64
    assert len(samples_ns["wall_ns"]) == 50
    assert (measured.calls_per_sample, measured.stopped_by) == (4, "samples")
    assert measured.warm_up is not None
    assert "stamps" in measured.quantities[0].method
    assert set(measured.quantities[0].floor) == {"quantum_ns", "overhead_ns", "bias_ns"}
    assert measured.counts["process_minor_faults"] >= 0
    assert memory["peak"] >= memory["peak_while_running"] >= memory["anonymous"] > 0
    assert memory["allocator_live"] == 12
    assert worker.survivors == ()


def test_an_asynchronous_contestant_gives_two_quantities_each_whole(files: Files) -> None:
    with nothing_left_of(WorkerProcess(python_worker(), environment=environment())) as worker:
        worker.prepare(files.request("asynchronous"), within_s=60)
        _, samples_ns = worker.measure(samples=20, warmup=1, calls_per_sample=1, within_s=60)
    assert list(samples_ns) == ["wall_ns", "host_issue_ns"]
    assert (samples_ns["wall_ns"] >= samples_ns["host_issue_ns"]).all()


def test_labels_may_lie_in_the_file_of_the_inputs(files: Files) -> None:
    request = msgspec.structs.replace(files.request(), labels=files.request().inputs)
    with nothing_left_of(WorkerProcess(python_worker(), environment=environment())) as worker:
        assert worker.prepare(request, within_s=60).in_force["labels"] == "[0 2]"


def test_nothing_heavy_is_imported_before_there_is_something_to_prepare() -> None:
    code = (
        "import sys; import fairlap.worker.__main__\n"
        "print([n for n in sys.modules if n in ('numpy', 'scipy', 'click')])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), timeout=60)
    assert run.stdout.strip() == "[]", run.stderr


def test_no_request_lasts_beyond_the_time_by_which_a_worker_has_to_end() -> None:
    with pytest.raises(WorkerLost) as lost:
        WorkerProcess(python_worker(), environment=environment(), ends_by_s=time.monotonic())
    assert (lost.value.outcome, lost.value.code) == ("timeout", "E_BUDGET")


@pytest.mark.slow
def test_an_epoch_that_outlasts_its_own_limit_is_not_said_to_outlast_the_budget() -> None:
    worker = WorkerProcess(python_worker(), environment=environment(), longest_request_s=0.5)
    os.kill(worker.pid, signal.SIGSTOP)
    with pytest.raises(WorkerLost) as lost:
        worker.ask(Epoch(0, "data", "order", "state"), within_s=0.6)
    assert (lost.value.outcome, lost.value.code) == ("timeout", "E_TIMEOUT")


def test_a_worker_is_on_its_cores_from_the_first_moment_and_its_parent_returns_to_its_own() -> None:
    before = os.sched_getaffinity(0)
    core = max(before)
    with nothing_left_of(WorkerProcess(python_worker(), environment=environment(), cores=[core])) as worker:
        assert os.sched_getaffinity(worker.hello.pid) == {core}
    assert os.sched_getaffinity(0) == before


def test_cores_that_are_not_here_are_refused() -> None:
    before = os.sched_getaffinity(0)
    with pytest.raises(InvalidRequest, match="0,4000"):
        WorkerProcess(python_worker(), environment=environment(), cores=[0, 4000])
    assert os.sched_getaffinity(0) == before


def test_the_environment_is_given_whole() -> None:
    given = {"PYTHONPATH": environment()["PYTHONPATH"], "ONLY": "this"}
    with nothing_left_of(WorkerProcess(python_worker(), environment=given)) as worker:
        lines = Path(f"/proc/{worker.hello.pid}/environ").read_bytes().decode().split("\0")
    names = {line.partition("=")[0] for line in lines if line}
    assert names == {"PYTHONPATH", "ONLY", "FAIRLAP_WORKER"}


def test_ending_twice_is_harmless_and_no_descriptor_is_left_open(files: Files) -> None:
    open_before = len(list(Path("/proc/self/fd").iterdir()))
    worker = WorkerProcess(python_worker(), environment=environment())
    worker.prepare(files.request(), within_s=60)
    worker.end()
    worker.end()
    assert left_of(worker) == []
    assert len(list(Path("/proc/self/fd").iterdir())) == open_before


def test_ctrl_c_in_the_parent_ends_the_worker_at_once_and_is_raised_again(files: Files) -> None:
    with nothing_left_of(WorkerProcess(python_worker(), environment=environment())) as worker:
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        began_s = time.monotonic()
        try:
            with pytest.raises(KeyboardInterrupt):
                worker.prepare(files.request("hang@build"), within_s=60)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        assert time.monotonic() - began_s < 10
        assert left_of(worker) == []


@pytest.mark.slow_but("daemon@build-True", "stranger@build-False", "hang_in_native_code@build-True")
@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize(
    "variant", ["hang_in_native_code@build", "daemon@build", "child_in_its_own_group@build", "stranger@build"]
)
def test_a_parent_that_is_killed_takes_the_worker_and_its_children_along(
    files: Files, variant: str, frozen: bool
) -> None:
    program = textwrap.dedent(
        f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parents[2] / "support")!r})
        from pathlib import Path
        from workers_of_fake import Files, environment
        from fairlap.launch.started_worker import python_worker
        from fairlap.launch.worker_process import WorkerProcess
        worker = WorkerProcess(python_worker(), environment=environment())
        print(worker.session, worker.token, flush=True)
        worker.begin_to_prepare(Files(Path({str(files.folder)!r})).request({variant!r}), within_s=100)
        if {not variant.startswith("hang")!r}:
            worker.prepared()
        if {frozen!r}:
            worker.freeze()
        print("prepared", flush=True)
        sys.stdin.read()
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
    ) as parent:
        assert parent.stdout is not None
        pid, token = parent.stdout.readline().split()
        assert parent.stdout.readline() == "prepared\n"
        assert belonging_to(int(pid), token) != []
        parent.kill()
    wait_until_empty(lambda: belonging_to(int(pid), token), 60)


def state_of(worker: WorkerProcess) -> str:
    return Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_frozen_worker_does_nothing_and_answers_when_it_is_thawed(files: Files) -> None:
    with nothing_left_of(WorkerProcess(python_worker(), environment=environment())) as worker:
        worker.prepare(files.request(), within_s=60)
        for _ in range(3):
            worker.freeze()
            assert state_of(worker) == "T"
            worker.thaw()
            assert worker.answer("inputs", files.folder / "answer.safetensors", within_s=60).seconds > 0
        worker.freeze()
        with pytest.raises(WorkerLost) as how:
            worker.answer("inputs", files.folder / "answer.safetensors", within_s=0.2)
        assert how.value.code == "E_TIMEOUT"


def test_one_that_left_the_worker_is_frozen_with_it_and_its_cpu_time_is_known(files: Files) -> None:
    with nothing_left_of(WorkerProcess(python_worker(), environment=environment())) as worker:
        worker.prepare(files.request("stranger@build"), within_s=60)
        worker.freeze()
        worker.thaw()
        [stranger] = worker.cpu_of_started_s()
        worker.freeze()
        assert process_stat(stranger).state == "T"  # type: ignore[union-attr]
        before_s = worker.cpu_of_started_s()[stranger]
        os.kill(stranger, signal.SIGCONT)
        while worker.cpu_of_started_s()[stranger] < before_s + 0.1:
            time.sleep(0.001)
        with pytest.raises(WorkerLost) as how:
            worker.thaw()
    assert (how.value.outcome, how.value.code) == ("disqualified", "E_LEFT_RUNNING")
    assert str(stranger) in how.value.message


def test_workers_that_prepare_side_by_side_are_all_heard(files: Files) -> None:
    """Also those whose answer came before anyone waited for it."""
    workers = [WorkerProcess(python_worker(), environment=environment(), greeted=False) for _ in range(3)]
    try:
        for worker in workers:
            worker.greet()
            worker.begin_to_prepare(files.request(), within_s=0.5)
        too_late_s, idle = time.monotonic() + 0.6, 0
        while time.monotonic() < too_late_s or idle < 5:  # looks in a row at which all wait for the next request
            idle = idle + 1 if all(state_of(worker) == "S" for worker in workers) else 0
            time.sleep(0.01)
        assert [worker.prepared().version for worker in workers] == ["1.2"] * 3
    finally:
        for worker in workers:
            worker.end()
    assert [left_of(worker) for worker in workers] == [[]] * 3
