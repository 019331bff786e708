"""Identical contestants in every scenario: how often two of them are called different.

python -m tests.trust.identical latency                     a race of twelve contestants, 66 pairs
python -m tests.trust.identical latency --on jax --races 4
python -m tests.trust.identical callables --races 400       400 pairs, in this process
python -m tests.trust.identical                             the table of all races so far

Races of all commands are collected in one file. Each pair is judged alone, at 5 %, as in a race of two. Exit status 1
if more are called different than 5 % allow, in some scenario.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from fairlap import compare, verdict
from fairlap.race.counted_blocks import trouble, work_blocks
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.race import Race
from fairlap.request.names import Contestants, contestant_named
from fairlap.request.race_request import RaceRequest
from fairlap.verdict import Verdict

from .identical_pairs import RacedPairs, as_table, called_different, rate_of

OUT = Path("build/trust/identical.jsonl")
ROUNDS = 10
_MOST_SEED = 2**31 - 1


@dataclass(frozen=True)
class Cell:
    """What identical contestants are asked to do."""

    on: str
    contestants: int
    request: Mapping[str, Any] = field(default_factory=dict)
    metric: verdict.Metric = verdict.LATENCY


CONVNET = {"models": ("convnet",)}
COUNTING = "sh -c 'i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done'"
STEPS = {"mode": "train", "optimizer": "sgd:lr=0.0001,momentum=0.9"}
CELLS = {
    "latency": Cell("torch", 12, CONVNET),
    "grad": Cell("torch", 12, {**CONVNET, "mode": "grad"}),
    "train": Cell("torch", 12, {**CONVNET, **STEPS}),
    "to score": Cell("jax", 8, {"models": ("digits",), "mode": "train", "to_score": 0.9}, verdict.TIME_TO_SCORE),
    "fed": Cell("onnxruntime", 12, {**CONVNET, "data": "synthetic"}),
    "load": Cell(
        "onnxruntime", 6, {"models": ("mlp",), "load": {"p90": "5ms", "trial": "0.25s"}}, verdict.TIME_PER_REQUEST
    ),
    "generation": Cell("torch", 12, {"models": ("characters_generate",)}),
    "ranks": Cell("torch", 5, {**CONVNET, **STEPS, "processes": 2}),
    "commands": Cell(f"command:{COUNTING}", 12, {"models": ("callable",)}),
}
NUMBERS = [(each * 7919) % 2000 for each in range(400)]


def sort_numbers() -> None:
    sorted(NUMBERS)


def sorter() -> Callable[[], None]:
    """Like the others that it makes, but with numbers in another place of memory."""
    numbers = [int(str(number)) for number in NUMBERS]

    def sort_copies() -> None:
        sorted(numbers)

    return sort_copies


IN_PROCESS: Mapping[str, Callable[[], Mapping[str, Callable[[], None]]]] = {
    "callables": lambda: {"a": sort_numbers, "b": sort_numbers},
    "copies of a callable": lambda: {"a": sorter(), "b": sorter()},
}


def raced_in_process(scenario: str, seed: int) -> RacedPairs | None:
    """One pair, until it is decided or for two seconds."""
    found = compare(IN_PROCESS[scenario](), seed=seed)
    if not found.comparisons:
        print(f"race {seed} does not count: {found.why_no_verdict}", file=sys.stderr)
        return None
    [comparison] = found.comparisons
    claims = int(comparison.verdict in (Verdict.FASTER, Verdict.SLOWER))
    return RacedPairs(scenario, "sorted", 1, 2, found.blocks, claims, seed, round(found.elapsed_s, 2))


def raced(scenario: str, on: str, contestants: int, threads: int, count: int, seed: int) -> RacedPairs | None:
    """None where a contestant has no figure, or the machine was too busy for a verdict."""
    cell, name, began_s = CELLS[scenario], contestant_named(on), time.monotonic()
    given = {**cell.request, "blocks": count, "threads": threads, "seed": seed}
    request = msgspec.convert(given, RaceRequest, dec_hook=lambda kind, value: kind(value))
    arms = [msgspec.structs.replace(name, text=f"{scenario} {number}") for number in range(contestants)]
    plan = plan_of(msgspec.structs.replace(request, contestants=Contestants.of(arms)))
    # Started as in a race until decided. More rounds would be worth it to a race of so many, and take hours.
    blocks = tuple(msgspec.structs.replace(block, started="together", rounds=ROUNDS) for block in plan.blocks)
    race = Race(msgspec.structs.replace(plan, blocks=blocks))
    race.run()
    [found] = work_blocks(plan, race.processes, "controlled")
    if found.table is None or len(found.table.contestants) < contestants or found.metric != cell.metric:
        troubles = [each.why for each in found.unqualified.values()] + list(map(trouble, found.processes.values()))
        print(f"race {seed} does not count: {found.why_no_verdict or troubles}", file=sys.stderr)
        return None
    different = called_different(found.table)
    for each in different:
        print(verdict.sentence(each), file=sys.stderr)
    shown = "a program" if name.framework == "command" else on
    took_s = round(time.monotonic() - began_s, 1)
    return RacedPairs(scenario, shown, threads, contestants, found.table.blocks, len(different), seed, took_s)


def races_so_far() -> list[RacedPairs]:
    return msgspec.json.Decoder(RacedPairs).decode_lines(OUT.read_bytes()) if OUT.exists() else []


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("scenario", nargs="?", choices=[*IN_PROCESS, *CELLS])
    options.add_argument("--races", type=int, default=1)
    options.add_argument("--on", help="the contestant")
    options.add_argument("--contestants", type=int, help="in a race")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--blocks", type=int, default=6)
    given = options.parse_args()
    OUT.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(given.races if given.scenario else 0):
        seed = secrets.randbelow(_MOST_SEED)
        if given.scenario in IN_PROCESS:
            found = raced_in_process(given.scenario, seed)
        else:
            cell = CELLS[given.scenario]
            arms = given.contestants or cell.contestants
            found = raced(given.scenario, given.on or cell.on, arms, given.threads, given.blocks, seed)
        if found is not None:
            with OUT.open("ab") as file:
                file.write(msgspec.json.encode(found) + b"\n")
            if found.contestants > 2:
                print(f"{found.claims} of {found.pairs} pairs in {found.took_s:.0f} s", file=sys.stderr, flush=True)
    races = races_so_far()
    print(as_table(races))
    kinds = {(race.scenario, race.on, race.threads) for race in races}
    rates = [rate_of([race for race in races if (race.scenario, race.on, race.threads) == kind]) for kind in kinds]
    return 0 if all(rate.passed for rate in rates) else 1


if __name__ == "__main__":
    sys.exit(main())
