"""Many machines send runs to one shared store at once, while its server is killed.

Each run shall be there, once and whole.

python -m tests.trust.shared_store                          10,000 runs of 100 machines, two kills
python -m tests.trust.shared_store --processes 4 --runs 25

A machine is a thread with a file and connections of its own, in one of several processes. As a race does, it records a
run process by process, and then sends what waits. The server is killed with SIGKILL when a part of the runs is
recorded, and starts again after a second. At the end every machine sends what still waits. Exit status 1 if a run is
missing, is there twice, or differs from what was recorded.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

if TYPE_CHECKING:
    from postgresql_server import Server

DOWN_S = 1.0
SUPPORT = Path(__file__).parents[1] / "support"


@dataclass(frozen=True)
class Measured:
    recorded: int  # by all machines together
    stored: int  # in the shared store
    whole: int  # with every process, sample and row as recorded
    renamed: int  # because another machine had drawn the same id in the same second
    waited: int  # that could not be sent when they ended
    kills: int
    seconds: float


def measure(server: Server, url: str, folder: Path, *, processes: int, threads: int, runs: int, kills: int) -> Measured:
    """Measure ``runs`` of each thread."""
    spawning = multiprocessing.get_context("spawn")
    done = spawning.Value("q", 0)
    total = processes * threads * runs
    began_s = time.monotonic()
    with spawning.Pool(processes, initializer=_keep_counter, initargs=(done,)) as pool:
        arguments = [(url, folder / f"{number}", threads, runs, number) for number in range(processes)]
        counted = pool.starmap_async(_process, arguments)
        for kill in range(kills):
            while done.value < total * (kill + 1) // (kills + 1) and not counted.ready():
                time.sleep(0.01)
            server.kill()
            time.sleep(DOWN_S)
            server.start()
        found: Counter[str] = sum(counted.get(), Counter())
        seconds = time.monotonic() - began_s
    stored, whole = _compared(url, folder)
    return Measured(found["recorded"], stored, whole, found["renamed"], found["waited"], kills, seconds)


_done: Synchronized[int]


def _keep_counter(done: Synchronized[int]) -> None:
    global _done
    _done = done


def _process(url: str, folder: Path, threads: int, runs: int, seed: int) -> Counter[str]:
    found: list[Counter[str]] = []

    def machine(number: int) -> None:
        found.append(_machine(url, folder / f"{number}", runs, [seed, number]))

    machines = [threading.Thread(target=machine, args=(number,)) for number in range(threads)]
    for thread in machines:
        thread.start()
    for thread in machines:
        thread.join()
    if len(found) < threads:
        raise RuntimeError("a machine ended with an error")
    return sum(found, Counter())


def _machine(url: str, folder: Path, runs: int, seed: list[int]) -> Counter[str]:
    from fairlap.errors import FairlapError
    from fairlap.results.results import results_of
    from fairlap.store.recording import begin_recording
    from fairlap.store.shared.address import address_of
    from fairlap.store.shared.sender import Sender
    from fairlap.store.store import open_store

    _find_support()
    from runs_for_rows import a_run

    path = folder / "runs.sqlite"
    drawn = np.random.default_rng(seed)
    run = a_run(blocks=1)
    rows = results_of(run, "run").rows
    sender = Sender(address_of(url))
    found: Counter[str] = Counter()
    for _ in range(runs):
        with open_store(path) as store:
            recording = begin_recording(store, run.plan, run.machine, datetime.now(UTC).isoformat())
            sender.expect(path, recording.run)
            for process in run.processes:
                process.phases_s = {"import": float(drawn.random())}
                recording.keep(process, {"wall_ns": drawn.normal(1e6, 1e4, 50)})
            recording.end({"whole": 1.0}, rows=[msgspec.structs.replace(row, run=recording.run) for row in rows])
        found["recorded"] += 1
        try:
            carried = sender.send(path, recording.run)
        except FairlapError:
            carried = []
        found["renamed"] += sum(bool(each.was) for each in carried)
        found["waited"] += bool(sender.waiting(path))
        with _done.get_lock():
            _done.value += 1
    while waiting := sender.waiting(path):
        try:
            found["renamed"] += sum(bool(each.was) for each in sender.send(path, waiting[0]))
        except FairlapError:
            time.sleep(0.2)
    return found


def _compared(url: str, folder: Path) -> tuple[int, int]:
    """How many runs are stored, and how many of them are those of a machine, and whole."""
    from fairlap.store.shared.content import content_of
    from fairlap.store.shared.shared_store import open_shared_store

    whole = 0
    with open_shared_store(url, reading=True) as shared:
        stored = {each.run for each in shared.runs()}
        for run, content, rows, samples in _recorded(folder):
            with shared.database() as db:
                theirs = content_of(db, run)
            same = theirs is not None and theirs.digest == content
            whole += same and shared.rows(run) == rows and _samples(shared, run) == samples
    return len(stored), whole


def _recorded(folder: Path) -> Iterator[tuple[str, str, object, object]]:
    from fairlap.store.shared.content import content_of
    from fairlap.store.store import open_store

    for path in sorted(folder.rglob("runs.sqlite")):
        with open_store(path, reading=True) as store:
            for each in store.runs():
                with store.database() as db:
                    content = content_of(db, each.run)
                assert content is not None
                yield each.run, content.digest, store.rows(each.run), _samples(store, each.run)


def _samples(store: object, run: str) -> list[tuple[object, ...]]:
    from fairlap.store.file_store import Store

    assert isinstance(store, Store)
    with store.database() as db:
        found = db.execute(
            "SELECT block, contestant, quantity, ns FROM samples JOIN processes ON processes.number = samples.process"
            " JOIN runs ON runs.number = processes.run WHERE runs.id = ? ORDER BY samples.number",
            (run,),
        )
        return [tuple(each) for each in found]


def _find_support() -> None:
    if str(SUPPORT) not in sys.path:
        sys.path.insert(0, str(SUPPORT))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--threads", type=int, default=10, help="Machines in each process.")
    parser.add_argument("--runs", type=int, default=100, help="Runs of each machine.")
    parser.add_argument("--kills", type=int, default=2)
    wanted = parser.parse_args()
    _find_support()
    from postgresql_server import Server

    server = Server(durable=True)
    try:
        with tempfile.TemporaryDirectory(prefix="fairlap-machines-") as folder:
            found = measure(server, server.url(server.new_database()), Path(folder), processes=wanted.processes,
                            threads=wanted.threads, runs=wanted.runs, kills=wanted.kills)  # fmt: skip
    finally:
        server.stop()
    expected = wanted.processes * wanted.threads * wanted.runs
    print(
        f"{wanted.processes * wanted.threads} machines, {found.recorded:,} runs recorded in {found.seconds:.0f} s,"
        f" {found.kills} kills of the server\n"
        f"{found.stored:,} runs stored, {found.whole:,} of them whole; {found.waited:,} had to wait,"
        f" {found.renamed:,} got another id"
    )
    return int(not found.recorded == found.stored == found.whole == expected)


if __name__ == "__main__":
    sys.exit(main())
