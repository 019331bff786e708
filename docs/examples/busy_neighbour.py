"""Measure what one busy process does to frameworks on the same machine, and which setting helps.

A spinning process is pinned to one core. Each contestant runs the same work alone and next to it, in turns, and the
ratio of the medians is printed. ``--why`` repeats this for the first contestant with other settings of its threads.
A measurement counts only if other programs kept at most ``--most-disturbed`` cores busy meanwhile; otherwise it is
repeated until ``--minutes`` are over.

    python docs/examples/busy_neighbour.py --on torch,jax,onnxruntime --why
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fairlap.machine.doctor.observation import observe
from fairlap.race.planning.plan import Measuring
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.race import Race
from fairlap.request.names import Contestants
from fairlap.request.work import Work

SPIN = "while True: pass"


@dataclass(frozen=True)
class Setting:
    """How the contestant's threads wait, and where the neighbour runs."""

    name: str
    variables: Mapping[str, str] = field(default_factory=dict)
    threads: int | None = None  # None: all cores
    pinned: bool = True


DEFAULT = Setting("default")
SETTINGS = (
    Setting("neighbour not pinned", pinned=False),
    Setting("OMP_WAIT_POLICY=passive", {"OMP_WAIT_POLICY": "passive"}),
    Setting("GOMP_SPINCOUNT=0", {"GOMP_SPINCOUNT": "0"}),
    Setting("GOMP_SPINCOUNT=10000", {"GOMP_SPINCOUNT": "10000"}),
    Setting("OMP_WAIT_POLICY=active", {"OMP_WAIT_POLICY": "active"}),
    Setting("one thread", threads=1),
)


@contextmanager
def neighbour(core: int | None) -> Iterator[None]:
    """Keep one core busy; on any core if none is given."""
    pin = f"import os; os.sched_setaffinity(0, {{{core}}})\n" if core is not None else ""
    process = subprocess.Popen([sys.executable, "-c", pin + SPIN])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def milliseconds(model: str, contestant: str, cores: tuple[int, ...], threads: int, seed: int) -> float:
    """Return the median of one process, which may use all given cores, whatever its thread count."""
    plan = draw_plan(
        Contestants(contestant),
        (Work(model, 8),),
        blocks=1,
        conditions="controlled",
        threads=threads,
        available_cores=cores,
        seed=seed,
        measuring=Measuring(seconds=0.5),
    )
    race = Race(plan)
    race.run()
    process = race.processes[0]
    if not process.finished:
        raise SystemExit(f"{contestant} did not finish: {process.outcome}: {process.message}")
    return process.headline_ns / 1e6


@contextmanager
def variables_set(variables: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@dataclass(frozen=True)
class Pair:
    alone_ms: float
    disturbed_ms: float
    others_busy_cores: float  # used by neither the contestant nor the neighbour


def measure_pair(model: str, contestant: str, setting: Setting, seed: int) -> Pair:
    cores = tuple(sorted(os.sched_getaffinity(0)))
    threads = setting.threads or len(cores)
    mine = cores[:threads]  # a single thread shares its core with the neighbour
    with variables_set(setting.variables):
        began = busy_s()
        alone = milliseconds(model, contestant, mine, threads, seed)
        with neighbour(cores[0] if setting.pinned else None):
            disturbed = milliseconds(model, contestant, mine, threads, seed)
        ended = busy_s()
    others_s = (ended.total - began.total) - (ended.own - began.own)
    return Pair(alone, disturbed, max(others_s, 0.0) / (ended.at - began.at))


@dataclass(frozen=True)
class Busy:
    at: float
    total: float
    own: float  # this process and its ended children


def busy_s() -> Busy:
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:8]]
    total = (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")  # without idle and I/O wait
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return Busy(time.monotonic(), total, sum(each.ru_utime + each.ru_stime for each in own))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="convnet")
    parser.add_argument("--on", default="torch,jax,onnxruntime")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=10.0, help="stop after this long")
    parser.add_argument("--most-disturbed", type=float, default=0.1, metavar="CORES", help="most cores others may use")
    parser.add_argument("--why", action="store_true", help="also measure the first contestant with other settings")
    arguments = parser.parse_args()
    names = arguments.on.split(",")
    rows = [(name, DEFAULT) for name in names]
    rows += [(names[0], setting) for setting in SETTINGS] if arguments.why else []
    taken: dict[tuple[str, str], list[Pair]] = {(name, setting.name): [] for name, setting in rows}
    ends_at, tried = time.monotonic() + 60 * arguments.minutes, 0
    while time.monotonic() < ends_at and any(len(pairs) < arguments.rounds for pairs in taken.values()):
        # The row with the fewest pairs is next, so that all have about as many when the time is over.
        name, setting = min(rows, key=lambda row: len(taken[row[0], row[1].name]))
        if observe(seconds=1.0).others_busy_cores > arguments.most_disturbed:
            time.sleep(2.0)
            continue
        pair, tried = measure_pair(arguments.model, name, setting, tried), tried + 1
        print(f"{name}, {setting.name}: {pair}", file=sys.stderr, flush=True)
        if pair.others_busy_cores <= arguments.most_disturbed:
            taken[name, setting.name].append(pair)
    print("| contestant | setting | alone, ms | with a busy core, ms | ratio | used by others |")
    print("| --- | --- | --- | --- | --- | --- |")
    for (name, setting_name), pairs in taken.items():
        print(f"| {name} | {setting_name} | {cells_of(pairs)} |")
    counted = sum(map(len, taken.values()))
    print(f"\nMedians and ranges; {counted} of {tried} pairs of processes count.")


def cells_of(pairs: list[Pair]) -> str:
    if not pairs:
        return "never undisturbed | | |"
    alone, disturbed = [pair.alone_ms for pair in pairs], [pair.disturbed_ms for pair in pairs]
    ranges = [f"{statistics.median(ms):.2f} ({min(ms):.2f} to {max(ms):.2f})" for ms in (alone, disturbed)]
    others = statistics.median(pair.others_busy_cores for pair in pairs)
    return f"{' | '.join(ranges)} | {statistics.median(disturbed) / statistics.median(alone):.1f} | {others:.1f} cores"


if __name__ == "__main__":
    main()
