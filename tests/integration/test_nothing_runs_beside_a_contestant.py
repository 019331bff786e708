"""While a contestant is timed, nothing else of the race uses a core, by the kernel's counters of every thread."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.cli import cli
from fairlap.launch.worker_process import WorkerProcess
from fairlap.machine.programs.process_tree import descendants
from fairlap.scenarios.calls.latency_messages import Measure
from fairlap.scenarios.file_to_answer.stage_messages import MeasureItems
from fairlap.scenarios.learning.race import held_out_answers
from fairlap.scenarios.learning.training_messages import Epoch
from fairlap.scenarios.load.load_messages import OfferLoad
from fairlap.scenarios.ranks.ranks_messages import StepAlone
from fairlap.scenarios.rotated.rotated_messages import MeasureMix
from fairlap.worker.guardian import RANKS_TOKEN
from fairlap.worker.ranks.joining import NUMBERS
from grades import grades
from machine_marks import needs_proc

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), needs_proc]

MOST_OF_A_CORE = 0.01
TIMED = (Measure, MeasureItems, MeasureMix, Epoch, OfferLoad, StepAlone)
OWN = """
import numpy as np
import torch


def build():
    torch.manual_seed(0)
    wide = torch.nn.Sequential(torch.nn.Linear(20, 4000), torch.nn.ReLU(), torch.nn.Linear(4000, 2))
    return wide, (torch.randn(64, 20),)


def sized(tokens=16):
    torch.manual_seed(0)
    return torch.nn.Linear(20, 2), (torch.randn(8, tokens, 20),)


def load(path):
    return np.load(path)


def work():
    sum(range(10_000))
"""


class Beside:
    """What ran during the timed requests of a race: by kind of request, seconds of wall time and of CPU time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall_s, self.cpu_s, self.of_threads = Counter[str](), Counter[str](), Counter[str]()
        self.ranks: set[int] = set()
        self._begun: dict[str, Any] = {}
        send, ask = WorkerProcess._send, WorkerProcess.ask

        def sent(worker: WorkerProcess, message: Any, *limits: float) -> None:
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
        """Of every thread of the race but those of the worker that is timed, and the one that reads this.

        Where the contestant runs as ranks, these are timed, and the worker that conducts them is not.
        """
        found = {}
        every = (os.getpid(), *descendants(os.getpid()))
        ranks = groups_of_ranks(every)
        self.ranks |= ranks
        computing = ranks or {timed}
        for pid in every:
            try:
                if os.getpgid(pid) in computing:
                    continue
                for task in Path(f"/proc/{pid}/task").iterdir():
                    if int(task.name) != os.getpid():
                        name = f"{(task / 'comm').read_text().strip()} ({pid}/{task.name})"
                        found[name] = int((task / "schedstat").read_text().split()[0])
            except (OSError, IndexError):
                continue  # it has just ended
        return found


def groups_of_ranks(pids: Collection[int]) -> set[int]:
    """Return their process groups: neither what started the ranks is in one, nor are their guardians."""
    found = set()
    for pid in pids:
        try:
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            names = {each.partition(b"=")[0].decode(errors="replace") for each in variables}
            if RANKS_TOKEN in names and names.intersection(NUMBERS) and os.getpgid(pid) == os.getsid(pid):
                found.add(os.getpgid(pid))
        except OSError:
            continue
    return found


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """With so many held-out items that products of all of them take several threads, where they may have them."""
    return grades(tmp_path / "grades.csv", 4000)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a model of a user's, items and files for it, and rows for pipelines."""
    rng = np.random.default_rng(0)
    (tmp_path / "own_net.py").write_text(OWN)
    rows = rng.normal(size=(4000, 20)).astype(np.float32)
    np.savez(tmp_path / "items.npz", input=rows, labels=(rows[:, :3].sum(axis=1) > 0).astype(np.int64))
    for folder in ("files", "data"):
        (tmp_path / folder).mkdir()
    for number in range(3):
        np.save(tmp_path / "files" / f"{number}.npy", rows[:64])
    np.save(tmp_path / "data/rows.npy", rows)
    np.save(tmp_path / "data/labels.npy", np.arange(len(rows)) % 2)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    return tmp_path


@pytest.mark.parametrize(
    "scenario",
    [
        *("latency", "gradients", "training", "to a score", "own model to a score", "generation", "load", "fed"),
        *("commands", "callables", "files to answers", "mixed sizes", "pipelines", "ranks"),
    ],
)
def test_nothing_of_the_race_uses_a_core_while_a_contestant_is_timed(
    scenario: str, table: Path, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("torch", "jax", "onnxscript"):
        pytest.importorskip(module, reason="`make test` installs it and runs this")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(held_out_answers, "_ITEMS_AT_ONCE", 4000)
    beside = Beside(monkeypatch)
    seconds = "4s" if scenario == "ranks" else "0.4s"  # the conductor's few milliseconds of answers count, too
    usual = ("--blocks", "1", "--seconds", seconds, "--no-store", "--quiet")
    raced = ("--on", "torch,jax", *usual)
    quick = ("tabular", *raced)
    to_score = ("--mode", "train", "--to-score", "99.9%", "--epochs", "5")
    own_score = ("--loss", "cross_entropy", "--train-on", str(own / "items.npz"), *to_score)
    program = "python3 -c 'sum(range(100000))'"
    asked = {
        "latency": ("compare", *quick),
        "gradients": ("compare", *quick, "--mode", "grad"),
        "training": ("compare", *quick, "--mode", "train"),
        "to a score": ("compare", *quick, "--train-on", f"{table}:grade", *to_score),
        "own model to a score": ("compare", "own_net:build", "--on", "torch,jax", *usual, *own_score),
        "generation": ("compare", "characters_generate", *raced),
        "load": ("load", *quick, "--p90", "100ms", "--trial", "0.3s"),
        "fed": ("compare", *quick, "--data", "synthetic"),
        "commands": ("compare", "--command", f"a={program}", "--command", f"b={program}", *usual),
        "callables": ("compare", "callable", "--on", "python:call=own_net.work", *usual),
        "files to answers": (
            *("compare", "own_net:build", *raced, "--items", str(own / "files"), "--before", "own_net:load"),
        ),
        "mixed sizes": (
            *("compare", "own_net:sized", "--on", "torch", *usual, "--shapes-from", "tokens=lognormal(3,0.5):8..64"),
        ),
        "pipelines": ("compare", f"data:{own / 'data'}:batch=4", "--on", "loop,dataloader", *usual),
        "ranks": ("compare", *quick, "--mode", "train", "--processes", "2", "--threads", "1"),
    }
    with pytest.raises(SystemExit) as ended:
        cli.main(asked[scenario], standalone_mode=False)
    assert ended.value.code == (1 if "score" in scenario else 0)  # nobody reaches that score
    timed = {
        "to a score": {"Epoch"},
        "own model to a score": {"Epoch"},
        "load": {"OfferLoad"},
        "files to answers": {"MeasureItems"},
        "mixed sizes": {"MeasureMix"},
        "ranks": {"Measure", "StepAlone"},
    }
    assert timed.get(scenario, {"Measure"}) <= set(beside.wall_s)
    assert bool(beside.ranks) == (scenario == "ranks")
    for kind, wall_s in beside.wall_s.items():
        assert beside.cpu_s[kind] < MOST_OF_A_CORE * wall_s, (kind, wall_s, beside.of_threads)
