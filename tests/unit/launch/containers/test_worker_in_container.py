"""A worker in a container: the same messages, stopped and ended by its ids on this machine, and nothing left of it."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from fairlap.launch.containers.container import Container
from fairlap.launch.containers.images import Image
from fairlap.launch.started_worker import python_worker
from fairlap.launch.worker_lost import WorkerLost
from fairlap.launch.worker_process import WorkerProcess
from fairlap.machine.programs.processes import lives, thread_states
from machine_marks import needs_proc
from stand_in_docker import IMAGE_ID, asked_of, containers_in, needs_namespaces, write_docker
from workers_of_fake import PLUGGED, Files

pytestmark = [needs_proc, needs_namespaces]

IMAGE = Image("image:1", f"sha256:{IMAGE_ID}", (("PYTHONPATH", str(PLUGGED)),))
WORKER = python_worker("python3")[1:]


@pytest.fixture(autouse=True)
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "docker"
    monkeypatch.setenv("FAIRLAP_DOCKER", str(write_docker(folder)))
    return folder


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path).write()


def started(**options: object) -> WorkerProcess:
    return WorkerProcess(WORKER, environment={"HOME": "/"}, container=Container(IMAGE), **options)  # type: ignore[arg-type]


def ended_within(pid: int, seconds: float = 120.0) -> bool:
    until = time.monotonic() + seconds
    while lives(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not lives(pid)


def test_it_prepares_answers_measures_and_ends(files: Files, tmp_path: Path, docker: Path) -> None:
    with started() as worker:
        worker.prepare(files.request(), within_s=60)
        worker.answer("inputs", tmp_path / "answer.safetensors", within_s=60)
        measured, samples_ns = worker.measure(samples=50, calls_per_sample=4, within_s=60)
        assert worker.hello.pid != worker.pid  # it has another id there
        assert containers_in(docker) == [f"fairlap-{worker.token}"]
        memory = worker.quit().memory.bytes
    assert len(samples_ns["wall_ns"]) == measured.quantities[0].count == 50
    assert memory["peak"] > 0
    assert containers_in(docker) == []
    assert ended_within(worker.pid)


@pytest.mark.slow
def test_it_is_stopped_by_its_ids_on_this_machine(files: Files) -> None:
    with started() as worker:
        worker.prepare(files.request(), within_s=60)
        worker.freeze()
        assert {*thread_states(worker.pid)} == {"T"}
        worker.thaw()
        assert "T" not in thread_states(worker.pid)
        assert worker.quit()


@pytest.mark.slow
def test_it_has_the_cores_and_the_priority_of_others() -> None:
    core = min(os.sched_getaffinity(0))
    with started(cores=[core]) as worker:
        assert os.sched_getaffinity(worker.pid) == {core}
        assert os.getpriority(os.PRIO_PROCESS, worker.pid) == os.getpriority(os.PRIO_PROCESS, 0)


@pytest.mark.slow_but("segfault")
@pytest.mark.parametrize(
    ("variant", "outcome", "word"),
    [("segfault@compile", "crash", "SIGSEGV"), ("leave_with_words@compile", "exit", "status 1")],
)
def test_how_it_ended_is_reported_as_outside(files: Files, variant: str, outcome: str, word: str, docker: Path) -> None:
    with started() as worker, pytest.raises(WorkerLost, match=word) as raised:
        worker.prepare(files.request(variant), within_s=60)
    assert raised.value.outcome == outcome
    assert containers_in(docker) == []


@pytest.mark.slow
def test_one_that_hangs_is_ended_at_its_limit(files: Files, docker: Path) -> None:
    with started() as worker, pytest.raises(WorkerLost) as raised:
        worker.prepare(files.request("hang_in_native_code@compile"), within_s=1)
    assert raised.value.code == "E_TIMEOUT"
    assert containers_in(docker) == []
    assert ended_within(worker.pid)


@pytest.mark.slow
def test_it_ends_with_a_parent_that_is_killed_while_it_is_stopped(docker: Path) -> None:
    code = f"""
        import time
        from fairlap.launch.containers.container import Container
        from fairlap.launch.containers.images import Image
        from fairlap.launch.worker_process import WorkerProcess
        image = Image("image:1", "sha256:{IMAGE_ID}")
        worker = WorkerProcess({WORKER!r}, environment={{"HOME": "/"}}, container=Container(image))
        worker.freeze()
        print(worker.pid, flush=True)
        time.sleep(60)
    """
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert {*thread_states(pid)} == {"T"}
    os.kill(parent.pid, signal.SIGKILL)
    parent.communicate()
    assert ended_within(pid)


def test_one_whose_processes_are_not_visible_is_refused_and_removed(docker: Path) -> None:
    """As where the service runs on another machine: the first process it names is not that of a container here."""
    (docker / "docker").write_text(
        f"#!/bin/sh\n[ $1 = inspect ] && echo {os.getpid()} && exit 0\n"
        f'exec {sys.executable} {Path(__file__).parents[3] / "support/stand_in_docker.py"} {docker} "$@"\n'
    )
    with pytest.raises(WorkerLost) as raised:
        started()
    assert raised.value.code == "E_IMAGE"
    assert containers_in(docker) == []
    assert asked_of(docker)[-1][0] in ("rm", "run")


def test_what_the_service_cannot_start_is_one_line(docker: Path) -> None:
    (docker / "docker").write_text(
        "#!/bin/sh\necho 'docker: Error response from daemon: no.' >&2\necho 'See --help.' >&2\nexit 125\n"
    )
    with pytest.raises(WorkerLost, match="daemon: no") as raised:
        started()
    assert raised.value.code == "E_IMAGE"


def test_its_command_shares_what_it_needs_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN_TOKEN", "secret")
    folder = tmp_path / 'a,"b"'
    container = Container(IMAGE, readable=("/data",), writable=(str(folder),), folder="/work")
    command = container.command(WORKER, {"OWN_TOKEN": "secret", "PYTHONHASHSEED": "3"}, "token")
    options = command[: command.index(IMAGE.id)]
    for wanted in (
        "--network=none",
        "--pull=never",
        "--rm",
        "--interactive",
        "--workdir=/work",
        "--env=PYTHONHASHSEED=3",
    ):
        assert wanted in options
    assert f"--user={os.getuid()}:{os.getgid()}" in options
    assert "--env=OWN_TOKEN" in options  # by name: command lines are visible to all
    assert "secret" not in " ".join(command)
    [mounted] = [next(csv.reader([each.removeprefix("--mount=")])) for each in options if 'a,""b""' in each]
    assert mounted == ["type=bind", f"source={folder}", f"target={folder}"]
    assert "--mount=type=bind,source=/data,target=/data,readonly" in options
    [searched] = [each.removeprefix("--env=PYTHONPATH=") for each in options if each.startswith("--env=PYTHONPATH=")]
    assert searched.split(os.pathsep)[1:] == [str(PLUGGED)]  # the image's own comes after fairlap
