"""What one busy process on one core does to frameworks that share the machine with it, and what helps.

A process that only counts is pinned to one core. Each contestant runs the same work alone and beside it, in
turns, and the ratio of the medians is printed. ``--why`` repeats this for the first contestant with other settings
of its threads. A measurement counts only when nobody else kept more than ``--most-disturbed`` cores busy meanwhile;
it is tried again until ``--minutes`` are over.

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
from fairlap.race.plan import Measuring, draw_plan
from fairlap.race.race import Race
from fairlap.request.names import contestants_named
from fairlap.request.work import Work

SPIN = "while True: pass"


@dataclass(frozen=True)
class Setting:
    """How the contestant's threads wait, and where the neighbour runs."""

    name: str
    variables: Mapping[str, str] = field(default_factory=dict)
    threads: int | None = None  # all cores, unless told otherwise
    pinned: bool = True


AS_IT_IS = Setting("as it is")
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
    """A process that keeps one core busy; anywhere when no core is named."""
    pin = f"import os; os.sched_setaffinity(0, {{{core}}})\n" if core is not None else ""
    process = subprocess.Popen([sys.executable, "-c", pin + SPIN])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def milliseconds(model: str, contestant: str, cores: tuple[int, ...], threads: int, seed: int) -> float:
    """The median of one process, all cores allowed to it, whatever thread count it was given."""
    plan = draw_plan(
        contestants_named(contestant),
        (Work(model, 8),),
        blocks=1,
        conditions="controlled",
        as_found_beside=False,
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
    beside_ms: float
    others_busy_cores: float  # those that are neither the contestant nor the neighbour


def pair_of(model: str, contestant: str, setting: Setting, seed: int) -> Pair:
    cores = tuple(sorted(os.sched_getaffinity(0)))
    threads = setting.threads or len(cores)
    mine = cores[:threads]  # a single thread runs where the neighbour does
    with variables_set(setting.variables):
        began = busy_s()
        alone = milliseconds(model, contestant, mine, threads, seed)
        with neighbour(cores[0] if setting.pinned else None):
            beside = milliseconds(model, contestant, mine, threads, seed)
        ended = busy_s()
    others_s = (ended.everybody - began.everybody) - (ended.own - began.own)
    return Pair(alone, beside, max(others_s, 0.0) / (ended.at - began.at))


@dataclass(frozen=True)
class Busy:
    at: float
    everybody: float
    own: float  # this process, and all it started that have ended


def busy_s() -> Busy:
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:8]]
    everybody = (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")  # without idle and waiting for disks
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return Busy(time.monotonic(), everybody, sum(each.ru_utime + each.ru_stime for each in own))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="convnet")
    parser.add_argument("--on", default="torch,jax,onnxruntime")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=10.0, help="give up after this long, and show what there is")
    parser.add_argument("--most-disturbed", type=float, default=0.1, metavar="CORES", help="that others may keep busy")
    parser.add_argument("--why", action="store_true", help="also try other settings on the first contestant")
    wanted = parser.parse_args()
    names = wanted.on.split(",")
    rows = [(name, AS_IT_IS) for name in names]
    rows += [(names[0], setting) for setting in SETTINGS] if wanted.why else []
    taken: dict[tuple[str, str], list[Pair]] = {(name, setting.name): [] for name, setting in rows}
    ends_at, tried = time.monotonic() + 60 * wanted.minutes, 0
    while time.monotonic() < ends_at and any(len(pairs) < wanted.rounds for pairs in taken.values()):
        # Whoever has the fewest is next, so that all have about as many whenever the time is over.
        name, setting = min(rows, key=lambda row: len(taken[row[0], row[1].name]))
        if observe(seconds=1.0).others_busy_cores > wanted.most_disturbed:
            time.sleep(2.0)
            continue
        pair, tried = pair_of(wanted.model, name, setting, tried), tried + 1
        print(f"{name}, {setting.name}: {pair}", file=sys.stderr, flush=True)
        if pair.others_busy_cores <= wanted.most_disturbed:
            taken[name, setting.name].append(pair)
    print("| contestant | setting | alone, ms | beside a busy core, ms | times | others kept busy |")
    print("| --- | --- | --- | --- | --- | --- |")
    for (name, setting_name), pairs in taken.items():
        print(f"| {name} | {setting_name} | {told(pairs)} |")
    kept = sum(map(len, taken.values()))
    print(f"\nMedians, and ranges; {kept} of {tried} pairs of processes count.")


def told(pairs: list[Pair]) -> str:
    if not pairs:
        return "never undisturbed | | |"
    alone, beside = [pair.alone_ms for pair in pairs], [pair.beside_ms for pair in pairs]
    ranges = [f"{statistics.median(ms):.2f} ({min(ms):.2f} to {max(ms):.2f})" for ms in (alone, beside)]
    others = statistics.median(pair.others_busy_cores for pair in pairs)
    return f"{' | '.join(ranges)} | {statistics.median(beside) / statistics.median(alone):.1f} | {others:.1f} cores"


if __name__ == "__main__":
    main()
