"""A contestant behind an HTTP server gives the same answers, reports the same failures, and leaves nothing."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.launch.started_worker import python_worker
from fairlap.launch.worker_lost import WorkerLost
from fairlap.launch.worker_process import WorkerProcess
from fairlap.machine.programs.process_tree import descendants
from fairlap.machine.programs.processes import process_stat
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import hash_of
from fairlap.scenarios.asking import Prepared
from fairlap.worker.serving.over_http import over_http_in, without_server
from machine_marks import needs_proc
from thorough import thorough_where
from workers_of_fake import Files, environment, nothing_left_of

pytestmark = [pytest.mark.sanitized, needs_proc]
WITHIN_S = 60.0


@contextmanager
def prepared(
    files: Files, variant: str = "", options: Mapping[str, str] | None = None
) -> Iterator[tuple[WorkerProcess, Prepared]]:
    request = msgspec.structs.replace(files.request(variant), options={"over": "http", **(options or {})})
    with nothing_left_of(WorkerProcess(python_worker(), environment=environment())) as worker:
        yield worker, worker.prepare(request, within_s=WITHIN_S)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path).write()


def server_of(worker: WorkerProcess) -> int:
    [pid] = descendants(worker.pid)
    return pid


def becomes(pid: int, states: str) -> bool:
    """Within a minute; a process that has ended has no state."""
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        stat = process_stat(pid)
        if (stat.state if stat else "X") in states:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("tensors", thorough_where(lambda tensors: tensors == "json", ["binary", "json"]))
def test_the_answer_and_the_weights_are_those_without_a_server(files: Files, tensors: str) -> None:
    answer = files.folder / "answer.safetensors"
    with prepared(files, options={"tensors": tensors}) as (worker, found):
        worker.answer("inputs", answer, within_s=WITHIN_S)
        assert np.array_equal(safetensors.read(answer)["y"], files.x @ files.w)
        worker.answer("changed", answer, within_s=WITHIN_S)
        assert np.array_equal(safetensors.read(answer)["y"], -files.x @ files.w)
        measured, samples_ns = worker.measure(samples=5, warmup=1, calls_per_sample=1, within_s=WITHIN_S)
        assert (measured.quantities[0].name, len(samples_ns["wall_ns"])) == ("wall_ns", 5)
        memory = worker.quit().memory
    assert found.weights_hash == hash_of({"w": files.w})
    assert (found.version, found.work_in, found.in_force["threads"]) == ("1.2", "own_server", "1")
    assert found.in_force["over"] == "http"
    assert {"interpreter", "import", "build", "compile", "serve", "connect"} <= set(worker.phases_s)
    assert memory.bytes["children_peak"] > 1_000_000
    assert memory.absent["peak"]


def test_the_server_is_on_its_worker_s_cores_and_is_frozen_and_ended_with_it(files: Files) -> None:
    with prepared(files) as (worker, _):
        server = server_of(worker)
        assert os.sched_getaffinity(server) == os.sched_getaffinity(worker.pid)
        worker.freeze()
        assert becomes(server, "T")
        worker.thaw()
        worker.answer("inputs", files.folder / "answer.safetensors", within_s=WITHIN_S)
        os.kill(worker.pid, signal.SIGKILL)
        assert becomes(server, "ZX")


@pytest.mark.slow_but("segfault@call", "raise_plainly")
@pytest.mark.parametrize(
    ("variant", "outcome", "code", "word"),
    thorough_where(
        lambda case: case[0] in ("raise_plainly@call", "raise_memory@build"),
        [
            ("segfault@call", "failed", "E_SERVER", "SIGSEGV"),
            ("hang@call", "failed", "E_SERVER", "within 0.3 s"),
            ("raise_plainly@call", "failed", "E_SERVER", "no kernel for this"),
            ("segfault@build", "failed", "E_SERVER", "SIGSEGV"),
            ("raise_plainly@build", "failed", "E_EXCEPTION", "no kernel for this"),
            ("raise_memory@build", "out_of_memory", "E_MEMORY", "MemoryError"),
        ],
    ),
)
def test_what_goes_wrong_in_the_server_is_the_contestant_s_failure(
    files: Files, variant: str, outcome: str, code: str, word: str
) -> None:
    timeout = "300ms" if variant.startswith("hang") else "60s"
    with pytest.raises(WorkerLost) as raised, prepared(files, variant, {"timeout": timeout}) as (worker, _):
        worker.answer("inputs", files.folder / "answer.safetensors", within_s=WITHIN_S)
    assert (raised.value.outcome, raised.value.code) == (outcome, code), raised.value.message
    assert word in raised.value.message


def test_only_inference_is_served(files: Files) -> None:
    request = msgspec.structs.replace(files.request(), options={"over": "http"}, device="cuda:0")
    with (
        nothing_left_of(WorkerProcess(python_worker(), environment=environment())) as worker,
        pytest.raises(WorkerLost) as raised,
    ):
        worker.prepare(request, within_s=WITHIN_S)
    assert raised.value.outcome == "unsupported"


def test_its_options_are_not_the_framework_s() -> None:
    options = {"over": "http", "tensors": "json", "timeout": "2s", "mode": "max-autotune"}
    assert without_server(options) == {"mode": "max-autotune"}
    assert without_server({"tensors": "json"}) == {"tensors": "json"}
    assert over_http_in({"mode": "x"}) is None
    with pytest.raises(InvalidRequest):
        over_http_in({"over": "grpc"})
