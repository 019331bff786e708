"""While a contestant is timed, nothing else of the race uses a core, by the kernel's counters of every thread."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.cli import cli
from fairlap.launch.worker_process import WorkerProcess
from fairlap.machine.programs.processes import process_ids, process_stat
from fairlap.scenarios.calls.latency_messages import Measure
from fairlap.scenarios.learning.race import held_out_answers
from fairlap.scenarios.learning.training_messages import Epoch
from fairlap.scenarios.load.load_messages import OfferLoad
from machine_marks import needs_proc

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), needs_proc]

MOST_OF_A_CORE = 0.01
TIMED = (Measure, Epoch, OfferLoad)


class Beside:
    """What ran during the timed requests of a race: by kind of request, seconds of wall time and of CPU time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall_s, self.cpu_s, self.of_threads = Counter[str](), Counter[str](), Counter[str]()
        self._sessions = {os.getsid(0)}
        self._begun: dict[str, Any] = {}
        send, ask = WorkerProcess._send, WorkerProcess.ask

        def sent(worker: WorkerProcess, message: Any, *limits: float) -> None:
            self._sessions.add(worker.pid)
            send(worker, message, *limits)
            self._begun = {
                "others": self._others_ns(worker.pid),
                "wall_ns": time.perf_counter_ns(),
                "own_ns": time.thread_time_ns(),
            }

        def asked(worker: WorkerProcess, message: Any, *, within_s: float) -> Any:
            answer = ask(worker, message, within_s=within_s)
            own_ns, wall_ns = time.thread_time_ns(), time.perf_counter_ns()
            if isinstance(message, TIMED):
                self._count(type(message).__name__, self._others_ns(worker.pid), own_ns, wall_ns)
            return answer

        monkeypatch.setattr(WorkerProcess, "_send", sent)
        monkeypatch.setattr(WorkerProcess, "ask", asked)

    def _count(self, kind: str, others_ns: dict[str, int], own_ns: int, wall_ns: int) -> None:
        before = self._begun["others"]
        used_ns = {name: ns - before.get(name, 0) for name, ns in others_ns.items()}
        used_ns["the thread that asks"] = own_ns - self._begun["own_ns"]
        self.wall_s[kind] += (wall_ns - self._begun["wall_ns"]) / 1e9
        self.cpu_s[kind] += sum(used_ns.values()) / 1e9
        self.of_threads.update({f"{kind}: {name}": ns for name, ns in used_ns.items() if ns})

    def _others_ns(self, timed: int) -> dict[str, int]:
        """Of every thread of the race but those of the worker that is timed, and the one that reads this."""
        found = {}
        for pid in process_ids():
            stat = process_stat(pid)
            if pid != os.getpid() and (stat is None or stat.session not in self._sessions - {os.getsid(0)}):
                continue
            try:
                if os.getpgid(pid) == timed:
                    continue
                for task in Path(f"/proc/{pid}/task").iterdir():
                    if int(task.name) != os.getpid():
                        name = f"{(task / 'comm').read_text().strip()} ({pid}/{task.name})"
                        found[name] = int((task / "schedstat").read_text().split()[0])
            except (OSError, IndexError):
                continue  # it has just ended
        return found


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """With so many held-out items that products of all of them take several threads, where they may have them."""
    rng, file = np.random.default_rng(0), tmp_path / "grades.csv"
    features = rng.normal(size=(4000, 20)).round(4)
    kinds = np.where(features[:, :3].sum(axis=1) > 0, "a", "b")
    lines = [",".join([*map(str, row), kind]) for row, kind in zip(features, kinds, strict=True)]
    file.write_text("\n".join([",".join([*(f"feature {n}" for n in range(20)), "grade"]), *lines]))
    return file


@pytest.mark.parametrize("scenario", ["latency", "training", "to a score", "generation", "load"])
def test_nothing_of_the_race_uses_a_core_while_a_contestant_is_timed(
    scenario: str, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("torch", "jax"):
        pytest.importorskip(module, reason="`make test` installs it and runs this")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path))
    monkeypatch.setattr(held_out_answers, "_ITEMS_AT_ONCE", 4000)
    beside = Beside(monkeypatch)
    raced = ("--on", "torch,jax", "--blocks", "1", "--seconds", "0.4s", "--no-store", "--quiet")
    quick = ("tabular", *raced)
    to_score = ("--mode", "train", "--train-on", f"{table}:grade", "--to-score", "99.9%", "--epochs", "5")
    asked = {
        "latency": ("compare", *quick),
        "training": ("compare", *quick, "--mode", "train"),
        "to a score": ("compare", *quick, *to_score),
        "generation": ("compare", "characters_generate", *raced),
        "load": ("load", *quick, "--p90", "100ms", "--trial", "0.3s"),
    }
    with pytest.raises(SystemExit) as ended:
        cli.main(asked[scenario], standalone_mode=False)
    assert ended.value.code == (1 if scenario == "to a score" else 0)  # nobody reaches that score
    besides = {"to a score": {"Epoch"}, "load": {"OfferLoad"}}
    assert set(beside.wall_s) == {"Measure"} | besides.get(scenario, set())
    for kind, wall_s in beside.wall_s.items():
        assert beside.cpu_s[kind] < MOST_OF_A_CORE * wall_s, (kind, wall_s, beside.of_threads)
