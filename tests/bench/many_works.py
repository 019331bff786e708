"""How long a block of each of many small works takes whose contestants' processes are shared, and on what.

    python tests/bench/many_works.py                              100 works, six blocks, torch and onnxruntime
    python tests/bench/many_works.py --seconds 0.12                with turns of 12 ms instead of 40
    python tests/bench/many_works.py --alone 10                   with what ten of them take in processes of their own

Prints the time of a contestant in a block by phase, as the parent and as the worker see it, the goal, and how far the
first rounds after a warm-up are from the later ones. With --alone as many works, spread over all, also run a block in
processes of their own after every block among the others: the change of their ratio is what others carry over to them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from fairlap.models.registry import find
from fairlap.race.planning.plan import Measuring, Plan
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.processes import one_process
from fairlap.race.processes.bench import Overheads
from fairlap.race.processes.kept_workers import WorkerUse
from fairlap.race.processes.one_process import ProcessRun
from fairlap.race.race import Race
from fairlap.request.names import Contestants
from fairlap.request.work import Fresh, Work
from fairlap.scenarios.process_result import ProcessResult
from fairlap.store.recording import begin_recording
from fairlap.store.store import open_store

GOAL_S = 0.35  # 100 works, two contestants and six blocks in seven minutes
MODELS = (
    *("mlp", "digits", "tabular", "mnist", "softmax", "layernorm", "triad", "anomaly_autoencoder", "characters"),
    *("ds_cnn", "resnet8", "dlrm", "mobilenet_v1_025", "attention", "convnet", "conv2d", "gemm"),
)
BATCHES = (1, 2, 3, 4, 6, 8, 12, 16)
_MOST_GMACS = 0.3  # of a call

STAGES: dict[str, tuple[object, tuple[str, ...]]] = {
    "prepare": (ProcessRun, ("start", "begin_to_prepare", "prepared")),
    "check answers": (ProcessRun, ("check_answers",)),
    "warm up": (ProcessRun, ("warm_up",)),
    "rounds": (ProcessRun, ("take_a_turn",)),
    "freeze and thaw": (ProcessRun, ("freeze", "thaw")),
    "last answer, checks": (ProcessRun, ("finish_in_rounds",)),
    "figures of its samples": (one_process, ("record_rounds",)),
    "overhead of a call": (Overheads, ("measured",)),
    "drop or quit": (WorkerUse, ("finish",)),
    "end": (ProcessRun, ("end",)),
    "weights and inputs": (Race, ("_materials_of",)),
    "store": (Race, ("_keep_run",)),
}


@dataclass
class Stopwatch:
    """Adds up the time that methods take, without what those that it watches take within them."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    is_running: bool = False
    _running: list[float] = field(default_factory=list)

    def watch(self, stage: str, of: object, method: str) -> None:
        original: Callable[..., Any] = getattr(of, method)

        def timed(*args: Any, **options: Any) -> Any:
            if not self.is_running:
                return original(*args, **options)
            began_s = time.perf_counter()
            self._running.append(0.0)
            try:
                return original(*args, **options)
            finally:
                whole_s = time.perf_counter() - began_s
                self.seconds[stage] += whole_s - self._running.pop()
                if self._running:
                    self._running[-1] += whole_s

        setattr(of, method, timed)


def small_works(count: int) -> tuple[Work, ...]:
    """Of many models and sizes; the same ones first whatever the count."""
    found = [
        Work(model, batch)
        for batch, model in product(BATCHES, MODELS)
        if batch * (find(model).spec.gmacs_per_item or 0.0) <= _MOST_GMACS
    ]
    if len(found) < count:
        raise SystemExit(f"there are {len(found)} small works, not {count}")
    return tuple(found[:count])


def planned(contestants: str, works: Sequence[Work], blocks: int, fresh: Fresh, seconds: float) -> Plan:
    return draw_plan(
        Contestants(contestants),
        tuple(works),
        blocks=blocks,
        conditions="controlled",
        threads=1,
        available_cores=tuple(sorted(os.sched_getaffinity(0))),
        seed=1,
        fresh=fresh,
        measuring=Measuring(seconds=seconds),
    )


def print_phases(plan: Plan, processes: Sequence[ProcessResult], seconds: dict[str, float], took_s: float) -> None:
    count = len(processes)
    print(f"{len(plan.works)} works, {count} processes' works, {took_s:.1f} s")
    print(f"a contestant in a block of a work: {took_s / count:.3f} s; wanted: at most {GOAL_S:g} s")
    for stage, spent_s in sorted(seconds.items(), key=lambda each: -each[1]):
        print(f"  {stage:24s} {1e3 * spent_s / count:7.1f} ms")
    print(f"  {'everything else':24s} {1e3 * (took_s - sum(seconds.values())) / count:7.1f} ms")
    later = [each for each in processes if each.works_before]
    print("as the worker sees it, medians of works that were not the first of their process:")
    for phase in dict.fromkeys(name for each in later for name in each.phases_s):
        of_phase = [each.phases_s.get(phase, 0.0) for each in later]
        print(f"  {phase:24s} {1e3 * statistics.median(of_phase):7.1f} ms")
    print(f"rounds in a block: {statistics.mean(len(each.rounds_ns) for each in processes):.1f} on average")


def print_settling(processes: Sequence[ProcessResult]) -> None:
    """By works: one that is not warm yet is slower in its first round than in those after it."""
    for which, chosen in (("first", False), ("later", True)):
        logs = [np.log(each.rounds_ns) for each in processes if bool(each.works_before) == chosen and each.finished]
        changes = np.array([each[0] - np.median(each[1:]) for each in logs if len(each) > 1])
        if not len(changes):
            continue
        low, middle, high = 100 * np.expm1(np.percentile(changes, (25, 50, 75)))
        print(
            f"first round over those after it, {which} works of a process: {middle:+.2f} % "
            f"(quartiles {low:+.2f} to {high:+.2f} %, {len(changes)} processes)"
        )


def log_ratios(plan: Plan, processes: Sequence[ProcessResult]) -> dict[str, list[float]]:
    """By work, of each block: second contestant over first."""
    found: dict[str, list[float]] = {}
    first, second = (name.text for name in plan.contestants)
    for work in plan.works:
        by_block: dict[int, dict[str, ProcessResult]] = defaultdict(dict)
        for each in processes:
            if each.work_id == work.id and each.finished:
                by_block[each.block][each.contestant] = each
        found[work.label] = [
            float(np.median(np.log(own[second].rounds_ns)) - np.median(np.log(own[first].rounds_ns)))
            for own in by_block.values()
            if len(own) == 2
        ]
    return found


def print_carry_over(among: dict[str, list[float]], alone: dict[str, list[float]]) -> None:
    print("| work | ratio alone | among the others | change |\n| --- | --- | --- | --- |")
    changes = []
    for work, logs in alone.items():
        if not logs or not among[work]:
            continue
        apart, together = statistics.median(logs), statistics.median(among[work])
        changes.append(together - apart)
        print(f"| {work} | {np.exp(apart):.3f} | {np.exp(together):.3f} | {100 * np.expm1(together - apart):+.1f} % |")
    if len(changes) > 1:
        error = statistics.stdev(changes) / len(changes) ** 0.5
        print(f"mean change {100 * statistics.mean(changes):+.2f} %, standard error {100 * error:.2f} %")


def raced(race: Race, alone: Race | None, watch: Stopwatch) -> float:
    """Run both in turns, a block of every work; return the seconds that the first one took, which alone is watched."""
    took_s = 0.0
    with ExitStack() as stack:
        among = stack.enter_context(closing(race.in_blocks()))
        apart = None if alone is None else stack.enter_context(closing(alone.in_blocks()))
        for _ in range(len(race.plan.blocks) // len(race.plan.works)):
            began_s = time.perf_counter()
            watch.is_running = True
            for _ in race.plan.works:
                next(among, None)
            watch.is_running = False
            took_s += time.perf_counter() - began_s
            if apart is not None and alone is not None:
                for _ in alone.plan.works:
                    next(apart, None)
    return took_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--works", type=int, default=100)
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--alone", type=int, default=0)
    parser.add_argument("--on", default="torch,onnxruntime")
    parser.add_argument("--seconds", type=float, default=Measuring().seconds, help="of ten turns")
    given = parser.parse_args()
    works = small_works(given.works)
    plan = planned(given.on, works, given.blocks, "never", given.seconds)
    spread = works[:: len(works) // given.alone][: given.alone] if given.alone else ()
    alone = Race(planned(given.on, spread, given.blocks, "every", given.seconds)) if spread else None
    watch = Stopwatch()
    for stage, (of, methods) in STAGES.items():
        for method in methods:
            watch.watch(stage, of, method)
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "runs.sqlite")
        recording = begin_recording(store, plan, {}, datetime.now(UTC).isoformat(timespec="seconds"))
        race = Race(plan, keep=recording.keep)
        took_s = raced(race, alone, watch)
    print_phases(plan, race.processes, watch.seconds, took_s)
    print_settling(race.processes)
    if alone is not None:
        print_carry_over(log_ratios(plan, race.processes), log_ratios(alone.plan, alone.processes))


if __name__ == "__main__":
    main()
