"""Workers that run the fake framework, and the proof that nothing of a worker is left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fairlap.launch.started_worker import python_worker
from fairlap.launch.worker_lost import WorkerLost
from fairlap.launch.worker_process import WorkerProcess
from fairlap.machine.programs.processes import process_ids
from fairlap.models.array_files import safetensors
from fairlap.worker.guardian import living_processes
from fairlap.worker.protocol import Prepare
from processes_seen import content

PLUGGED = Path(__file__).parent / "plugged"
FAKE = "fake_framework:Fake"


def environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(PLUGGED), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Files:
    """What a worker is handed."""

    folder: Path

    @property
    def x(self) -> np.ndarray:
        return np.arange(8, dtype=np.float32).reshape(2, 4)

    @property
    def w(self) -> np.ndarray:
        return np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)

    def write(self) -> Files:
        safetensors.write(self.folder / "weights.safetensors", {"w": self.w})
        labels = np.array([0, 2], dtype=np.int32)
        safetensors.write(self.folder / "inputs.safetensors", {"x": self.x, "labels": labels})
        safetensors.write(self.folder / "changed.safetensors", {"x": -self.x, "labels": labels})
        return self

    def request(self, variant: str = "", framework: str = FAKE) -> Prepare:
        return Prepare(
            framework=framework,
            workload="tiny_model",
            batch=2,
            threads=1,
            weights=str(self.folder / "weights.safetensors"),
            inputs=str(self.folder / "inputs.safetensors"),
            changed=str(self.folder / "changed.safetensors"),
            variant=variant,
        )


@contextmanager
def nothing_left_of(worker: WorkerProcess) -> Iterator[WorkerProcess]:
    """Neither in its session nor with its token, wherever it went."""
    with worker:
        yield worker
    assert left_of(worker) == []


def left_of(worker: WorkerProcess) -> list[int]:
    return belonging_to(worker.session, worker.token)


def belonging_to(session: int, token: str) -> list[int]:
    """Also what has left the session and its environment, and has the token among its arguments."""
    named = [pid for pid in process_ids() if token.encode() in content(pid, "cmdline")]
    return [*living_processes(session, token), *named]


def whole_life(
    files: Files, variant: str, *, within_s: float = 120.0, memory_limit_bytes: int | None = None
) -> WorkerLost | None:
    """Everything that a race asks of a worker; how it was lost, or None."""
    worker = WorkerProcess(python_worker(), environment=environment(), memory_limit_bytes=memory_limit_bytes)
    try:
        with nothing_left_of(worker):
            worker.prepare(files.request(variant), within_s=within_s)
            worker.answer("inputs", files.folder / "answer.safetensors", within_s=within_s)
            worker.measure(samples=10, warmup=1, calls_per_sample=1, within_s=within_s)
            worker.quit()
    except WorkerLost as lost:
        return lost
    return None
