"""A full store: how long listing, filtering and showing take, from a cold and from a warm page cache.

    python tests/bench/store.py --rows 1000000 --samples 100000000
    python tests/bench/store.py --rows 1000000 --samples 100000000 --shared

Every run has eight rows, of four contestants on one model under two kinds of conditions, and a process for each. The
run that is shown is a large one: eight contestants in 24 blocks. Takes about eight bytes a sample and 5 kB a row, in a
temporary folder that is removed at the end. With --shared the store is in a PostgreSQL server on this machine, with
its own settings as they come and a warm cache; the runs there are 500 that the server itself has multiplied.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any, Literal

import msgspec
import numpy as np
from fairlap.engine.measurement import Notice
from fairlap.meters.memory import Memory
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.run import Run
from fairlap.request.names import Contestants
from fairlap.request.work import Conditions, Work
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.results import results_of
from fairlap.results.row import Row
from fairlap.scenarios.process_result import AnswerError, ProcessResult, Timing
from fairlap.store.database import Database
from fairlap.store.file_store import Store
from fairlap.store.recording import begin_recording
from fairlap.store.runs.run_ids import id_of
from fairlap.store.search import Wanted
from fairlap.store.shared import connection
from fairlap.store.shared.sending import push
from fairlap.store.shared.shared_store import SharedStore
from fairlap.store.store import open_store
from fairlap.store.tables import StoredProcess, insert_run, keep_rows, store_process, stored_process

_MODELS = [f"model_{number}" for number in range(50)]
_FRAMEWORKS = ("torch", "jax", "tensorflow:graph", "onnxruntime", "openvino", "litert", "torch:compile", "paddle")
_ROWS_OF_A_RUN = 8
_RUNS_AT_ONCE = 500
_BIG_RUN_SAMPLES = 5_000
_ROUNDS = 5
_FIRST = datetime(2020, 1, 1, tzinfo=UTC)


def a_plan(
    model: str, contestants: tuple[str, ...], blocks: int, conditions: Literal["controlled", "both"] = "controlled"
) -> Plan:
    return draw_plan(
        Contestants(",".join(contestants)), (Work(model, 8),), blocks=blocks, conditions=conditions,
        threads=2, available_cores=(0, 1), seed=1,
    )  # fmt: skip


def a_process(
    block: int, position: int, name: str, work: Work, conditions: Conditions, rng: np.random.Generator
) -> ProcessResult:
    """About as long, as JSON, as those of real races: 2 kB."""
    value = float(rng.normal(2e6, 2e4)) * (1 + len(name) / 10)
    settings = {f"setting {number}": "a value that a framework might report" for number in range(8)}
    return ProcessResult(
        block=block,
        position=position,
        contestant=name,
        work_id=work.id,
        conditions=conditions,
        version="1.2.3",
        in_force={"threads": "2", "precision": "fp32", **settings},
        phases_s={phase: float(rng.random()) for phase in ("interpreter", "numpy", "import", "build", "first_call")},
        timings={"wall_ns": Timing(value, 1.1 * value, 1.5 * value, 100, 1, 0, "flat", "tsc stamps", 10.0)},
        errors=[AnswerError("logits", when, 1.0, 2e-6, 1e-7, True) for when in ("before", "after")],
        per_call={"page_faults": 0.0, "thread_cpu_ns": value, "process_cpu_ns": 2 * value},
        machine={"steal share": 0.0, "run queue": 0.1},
        warnings=[Notice("W_PREEMPTED", "the kernel took the core away 7 times; something else is running here")],
        memory=Memory({"peak": 96_575_488, "anonymous": 54_804_480, "file": 40_431_616}),
        hash_seed=1,
        cores=(0, 1),
    )


def processes_of(plan: Plan, rng: np.random.Generator) -> list[ProcessResult]:
    return [
        a_process(block.number, position, plan.contestants[place].text, plan.works[block.work], block.conditions, rng)
        for block in plan.blocks
        for position, place in enumerate(block.order)
    ]


def fill(store: Store, rows: int, samples: int, rng: np.random.Generator) -> str:
    """Fill the store, and return the id of the large run, which began in the middle of all the others."""
    runs, each = rows // _ROWS_OF_A_RUN, samples // rows
    if isinstance(store, SharedStore):
        runs = min(runs, _RUNS_AT_ONCE)
    drawn = rng.normal(2e6, 1e4, each + 10_000).astype("<f8")
    patterns = [pattern_of(model, rng) for model in _MODELS]
    done = 0
    while done < runs:
        with store.database(writing=True) as db:
            for number in range(done, min(runs, done + _RUNS_AT_ONCE)):
                run, processes, flat_rows = patterns[number * 7919 % len(patterns)]
                run.began_at = (_FIRST + timedelta(minutes=10 * number)).isoformat()
                run_id = id_of(run.began_at)
                place = insert_run(db, run_id, "finished", run)
                for process in processes:
                    start = int(rng.integers(10_000))
                    raw = {"wall_ns": drawn[start : start + each].tobytes()}
                    store_process(db, place, msgspec.structs.replace(process, samples=raw))
                keep_rows(db, [of_run(row, run_id, run.began_at, rng) for row in flat_rows])
        done += _RUNS_AT_ONCE
    if isinstance(store, SharedStore):
        multiply(store, rows // _ROWS_OF_A_RUN)
    return keep_large(store, (_FIRST + timedelta(minutes=5 * rows // _ROWS_OF_A_RUN)).isoformat(), rng)


def multiply(shared: SharedStore, runs: int) -> None:
    """Copy the runs that are there, each ten minutes after the one before."""
    with shared.database(writing=True) as db:
        [[first, made, processes, samples]] = db.execute(
            "SELECT (SELECT max(id) FROM runs), (SELECT max(number) FROM runs), (SELECT max(number) FROM processes),"
            " (SELECT max(number) FROM samples)"
        ).fetchall()
        copies = f"generate_series(1, {max(runs // made - 1, 1)}) AS copy"
        began = f"TIMESTAMP '2020-01-01' + (copy * {made} + runs.number) * INTERVAL '10 minutes'"
        run_id = f"to_char({began}, 'YYYYMMDD-HH24MISS') || substr(id, 16)"
        numbers = {"number": f"number + copy * {made}", "id": run_id, "began_at": f"to_char({began}, 'YYYY-MM-DD')"}
        _copy(db, "runs", copies, numbers)
        for table in ("works", "contestants"):
            _copy(db, table, copies, {"run": f"run + copy * {made}"})
        _copy(db, "processes", copies, {"number": f"number + copy * {processes}", "run": f"run + copy * {made}"})
        _copy(
            db, "samples", copies, {"number": f"number + copy * {samples}", "process": f"process + copy * {processes}"}
        )
        _copy(db, "rows JOIN runs ON runs.id = rows.run", copies, {"run": run_id})
        for table in ("runs", "processes", "samples"):
            db.execute(f"SELECT setval(pg_get_serial_sequence('fairlap.{table}', 'number'), max(number)) FROM {table}")
    with shared.database() as db:
        assert db.execute("SELECT max(id) > ? FROM runs", (first,)).fetchall() == [(True,)]
    shared._connection.execute("VACUUM ANALYZE")


def _copy(db: Database, source: str, copies: str, changed: dict[str, str]) -> None:
    table = source.split()[0]
    names = [name for (name, *_) in db.execute(f"SELECT * FROM {table} LIMIT 0").description if name != "rowid"]
    values = ", ".join(changed.get(name, f'{table}."{name}"') for name in names)
    listed = ", ".join(f'"{name}"' for name in names)
    db.execute(f"INSERT INTO {table} ({listed}) SELECT {values} FROM {source}, {copies} ORDER BY copy")


def of_run(row: Row, run_id: str, began_at: str, rng: np.random.Generator) -> Row:
    """With times that vary from run to run, as a history has them."""
    assert row.latency_p50_ns is not None
    latency = Estimate(row.latency_p50_ns.value * float(rng.lognormal(0, 0.01)))
    return msgspec.structs.replace(row, run=run_id, recorded_at=began_at, latency_p50_ns=latency)


def pattern_of(model: str, rng: np.random.Generator) -> tuple[Run, list[StoredProcess], list]:  # type: ignore[type-arg]
    """Make what many runs of one model share, once, since filling the store is not what is measured."""
    at = int(rng.integers(len(_FRAMEWORKS)))
    four = tuple(_FRAMEWORKS[(at + step) % len(_FRAMEWORKS)] for step in range(4))
    run = Run(a_plan(model, four, 1, "both"), [], {"cpu model": "Imaginary 9000", "cores": "2"}, {"whole": 10.0})
    run.processes = processes_of(run.plan, rng)
    rows = list(results_of(run, "pattern").rows)
    assert len(rows) == _ROWS_OF_A_RUN
    return run, [stored_process(process) for process in run.processes], rows


def keep_large(store: Store, began_at: str, rng: np.random.Generator) -> str:
    if isinstance(store, SharedStore):
        with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "runs.sqlite") as local:
            run = keep_large(local, began_at, rng)
            assert [each.outcome for each in push(local, store, [run])] == ["sent"]
            return run
    plan = a_plan("large", _FRAMEWORKS, blocks=12)
    recording = begin_recording(store, plan, {"cpu model": "Imaginary 9000"}, began_at)
    for process in processes_of(plan, rng):
        recording.keep(process, {"wall_ns": rng.normal(2e6, 1e4, _BIG_RUN_SAMPLES)})
    recording.end({"whole": 100.0})
    return recording.run


def forget(path: Path) -> None:
    """Drop the pages of the file from the page cache, as after a restart."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def command(store: str, *arguments: str) -> Callable[[], object]:
    environment = {**os.environ, "FAIRLAP_STORE": store}
    whole = [sys.executable, "-m", "fairlap", *arguments]
    return lambda: subprocess.run(whole, env=environment, check=True, capture_output=True)


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def asked(name: str, path: Path | None, large: str) -> Iterator[tuple[str, Callable[[], object]]]:
    def opened(ask: Callable[[Store], object]) -> Callable[[], object]:
        def opened_and_asked() -> object:
            with open_store(path, reading=True) as store:
                return ask(store)

        return opened_and_asked

    middle = "2021-01-01"
    process = processes_of(a_plan("large", _FRAMEWORKS, blocks=12), np.random.default_rng(0))[0]
    by_work = "SELECT count(*), avg(latency_p50_ns) FROM results WHERE workload = 'model_7' AND contestant = 'jax'"
    by_verdict = "SELECT count(*) FROM results WHERE verdict = 'slower'"
    yield "list the newest 20", opened(lambda store: store.runs(limit=20))
    yield "list the newest 1,000", opened(lambda store: store.runs(limit=1000))
    yield "of a model", opened(lambda store: store.runs(Wanted(model="model_7"), 20))
    yield "of a framework", opened(lambda store: store.runs(Wanted(on="torch"), 20))
    yield "of a model, a contestant, since", opened(lambda store: store.runs(Wanted("model_7", "jax", middle), 20))
    yield "of a rare model and a common framework", opened(lambda store: store.runs(Wanted("large", "torch"), 20))
    yield "of a model that never ran", opened(lambda store: store.runs(Wanted(model="no such"), 20))
    yield "SQL: one contestant on one model", opened(lambda store: queried(store, by_work))
    yield "SQL: by a column without an index", opened(lambda store: queried(store, by_verdict))
    yield "samples of one process", opened(lambda store: store.samples(large, process.block, process.contestant))
    yield "fairlap runs", command(name, "runs")
    yield "fairlap runs --model --on", command(name, "runs", "--model", "model_7", "--on", "jax")
    yield "fairlap history, a model and a framework", command(name, "history", "model_7", "--on", "jax")
    yield "fairlap stale", command(name, "stale")
    yield "fairlap show, 192 processes", command(name, "show", large)
    with open_store(path, reading=True) as store:
        others = [each.run for each in store.runs(limit=5)]
    yield "fairlap across, 6 runs", command(name, "across", large, *others)


def queried(store: Store, query: str) -> list[Any]:
    with store.database() as db:
        return db.execute(query).fetchall()


def measure_shared(rows: int, samples: int) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
    from postgresql_server import Server

    connection.ANSWER_WITHIN_S = 600.0  # multiplying takes minutes
    server = Server(durable=True)
    try:
        os.environ["FAIRLAP_STORE"] = url = server.url(server.new_database())
        began = time.perf_counter()
        with open_store() as store:
            large = fill(store, rows, samples, np.random.default_rng(0))
            [[stored, size]] = queried(
                store, "SELECT (SELECT count(*) FROM rows), pg_database_size(current_database())"
            )
        took_s = time.perf_counter() - began
        print(f"{stored:,} rows: {size / 1e9:.2f} GB, filled in {took_s:.0f} s\n\n| | s |\n| --- | --- |")
        for name, work in asked(url, None, large):
            print(f"| {name} | {median([seconds(work) for _ in range(_ROUNDS)]):.3f} |", flush=True)
    finally:
        server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, help="Where the temporary folder is made.")
    parser.add_argument("--shared", action="store_true", help="In a PostgreSQL server of its own.")
    wanted = parser.parse_args()
    if wanted.shared:
        measure_shared(wanted.rows, wanted.samples)
        return
    with tempfile.TemporaryDirectory(prefix="fairlap-bench-", dir=wanted.folder) as folder:
        path = Path(folder) / "runs.sqlite"
        began = time.perf_counter()
        with open_store(path) as store:
            large = fill(store, wanted.rows, wanted.samples, np.random.default_rng(0))
        took_s = time.perf_counter() - began
        gigabytes = path.stat().st_size / 1e9
        print(f"{wanted.rows:,} rows, {wanted.samples:,} samples: {gigabytes:.2f} GB, filled in {took_s:.0f} s\n")
        print("| | cold, s | warm, s |\n| --- | --- | --- |")
        for name, work in asked(str(path), path, large):
            cold = []
            for _ in range(_ROUNDS):
                forget(path)
                cold.append(seconds(work))
            warm = [seconds(work) for _ in range(_ROUNDS)]
            print(f"| {name} | {median(cold):.3f} | {median(warm):.3f} |", flush=True)


if __name__ == "__main__":
    main()
