"""Races of three models of which it is certain what bounds them: how often the rows say so.

python -m tests.trust.bounds                      20 runs
python -m tests.trust.bounds --neighbours 2       beside programs that burn as many cores

``triad`` on arrays beyond the caches moves more than it computes, ``gemm`` computes more than it moves, and ``empty``
does neither. In each run every contestant races in a fresh process, and the roofs are measured again. Exit status 1 if
a row says something else, or leaves the bound open.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Iterator

from fairlap.machine.hardware.roofs import Roofs, roofs_of
from fairlap.models.call_cost import call_cost
from fairlap.models.registry import find
from fairlap.race.planning.plan import Measuring
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.race import Race
from fairlap.race.run import Run
from fairlap.request.names import Contestants
from fairlap.request.work import Work
from fairlap.results.results import results_of
from fairlap.results.row import Row

from .honest import neighbours

CONTESTANTS = "torch,onnxruntime,jax"
EXPECTED = {"triad": "memory-bound", "gemm": "compute-bound", "empty": "overhead-bound"}
_BEYOND = 1.2  # times the largest cache


def works(roofs: Roofs) -> tuple[Work, ...]:
    """Choose the works: the triad at the smallest batch whose arrays no cache holds."""
    largest = max(roofs.cache_bytes.values(), default=0)
    of_one = call_cost(find("triad").spec, Work("triad", 1))
    assert of_one is not None
    beyond = int(_BEYOND * largest / of_one.working_set_bytes) + 1
    return tuple(Work(model, beyond if model == "triad" else 1) for model in EXPECTED)


def raced(number: int, threads: int, seconds: float) -> Iterator[Row]:
    roofs = roofs_of(threads, again=True)
    plan = draw_plan(
        Contestants(CONTESTANTS),
        works(roofs),
        blocks=1,
        conditions="controlled",
        threads=threads,
        available_cores=tuple(sorted(os.sched_getaffinity(0))),
        seed=number,
        measuring=Measuring(seconds=seconds),
    )
    race = Race(plan)
    race.run()
    yield from results_of(Run(plan, race.processes, {}, {}, roofs=roofs), f"run {number}").rows


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=20)
    options.add_argument("--first", type=int, default=0, help="seed of the first run; each has the next one")
    options.add_argument("--seconds", type=float, default=0.1, help="measured of each contestant")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--neighbours", type=int, default=0)
    given = options.parse_args()
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    wrong = 0
    with neighbours(given.neighbours):
        for number in range(given.first, given.first + given.runs):
            for row in raced(number, given.threads, given.seconds):
                found[row.workload, row.contestant].append(row)
                if row.bound != EXPECTED[row.workload]:
                    wrong += 1
                    why = row.bound_evidence or row.message or row.absent["bound"]
                    print(f"{row.contestant} on {row.workload} is {row.bound}: {why}", file=sys.stderr, flush=True)
            print(f"{number + 1 - given.first} of {given.runs} runs, {wrong} rows wrong", file=sys.stderr, flush=True)
    print(
        "| model | contestant | batch | expected | so in | share of the roof |\n| --- | --- | --- | --- | --- | --- |"
    )
    for (model, contestant), rows in sorted(found.items()):
        right = sum(row.bound == EXPECTED[model] for row in rows)
        shares = sorted(row.roof_share for row in rows if row.roof_share is not None)
        span = f"{100 * shares[0]:.3g} to {100 * shares[-1]:.3g} %" if shares else "–"
        cells = (f"`{model}`", contestant, rows[0].batch, EXPECTED[model], f"{right} of {len(rows)} runs", span)
        print(f"| {' | '.join(map(str, cells))} |")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
