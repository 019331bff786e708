"""Pairs of one measurement by fairlap and one by hand, in turns and in fresh processes, and the ratio of the two."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fairlap.race.processes.block_worker import CONTROLLED_MEMORY, OFFLINE
from fairlap.verdict.exact_tests import signed_rank

from .cases import Case, Row

LEVEL = 0.05
LIMIT_S = 600
DEVICE = "AGREEMENT_DEVICE"
PORTS = ("AGREEMENT_PORT", "AGREEMENT_SECOND_PORT")  # at which ranks meet


@dataclass(frozen=True)
class Pair:
    case: str
    contestant: str
    threads: int
    fairlap: float
    by_hand: float


@dataclass(frozen=True)
class Agreement:
    """Of one contestant in one case: the ratio of fairlap's figure to that of the loop, over all pairs."""

    case: str
    contestant: str
    threads: int
    pairs: int
    by_hand: float
    ratio: float
    low: float
    high: float
    allowed: float

    @property
    def agrees(self) -> bool | None:
        """None where the interval holds both ratios that are allowed and ratios that are not."""
        least, most = 1 - self.allowed, 1 + self.allowed
        if least <= self.low and self.high <= most:
            return True
        return False if self.high < least or most < self.low else None


def pairs_of(
    cases: Sequence[Case], threads: int, number: int, models: Path, contestants: Sequence[str], device: str
) -> Iterator[Pair]:
    """Pair cases with one command, which runs once with all of the contestants, with the loops of each of them.

    The loops come second, since the command finds what some loops are given. The order of the contestants is turned
    round in every other pair.
    """
    rows, cores = rows_and_cores(cases[0], threads, contestants, device)
    for name in contestants if number % 2 else reversed(contestants):
        for case in cases if name in rows else ():
            figure = case.figure(rows[name])
            yield Pair(
                case.name, name, threads, figure, by_hand(case, name, threads, rows[name], models, cores, device)
            )


def rows_and_cores(
    case: Case, threads: int, contestants: Sequence[str], device: str
) -> tuple[Mapping[str, Row], Sequence[int]]:
    """Race, and return the rows by contestant and the cores that the block drew: the loops run on the same."""
    if not case.is_race:
        return _untrusted_rows(case), sorted(os.sched_getaffinity(0))
    on = [] if "--command" in case.command else ["--on", ",".join(contestants)]
    command = [*case.command, *on, "--threads", str(threads), "--blocks", "1", "--data-seed", "0", "--json", "--quiet"]
    if device != "cpu":
        command += ["--device", device]
    if "--command" in case.command:
        command = [each for each in command if each not in ("--data-seed", "0")]
    run = _printed(command)
    rows = {row["contestant"]: row for row in run["rows"]}
    for name, row in list(rows.items()):
        if row["outcome"] != "finished":
            print(f"{case.name}, {name}: {row['outcome']}: {row['message']}", file=sys.stderr)
            del rows[name]
    return rows, run["plan"]["blocks"][0]["cores"]


def _untrusted_rows(case: Case) -> Mapping[str, Row]:
    """By the name of the callable alone, with what all of them have in common."""
    found = _printed([*case.command, "--json"])
    if found.get("excluded"):
        raise RuntimeError(f"{case.name}: {found['excluded']}")
    print(f"{case.name}: floor {found['floor_ns']:.0f} ns, subtracted: {found['floor_subtracted']}", file=sys.stderr)
    shared = {"calls_per_sample": found["calls_per_sample"]}
    return {row["name"].rpartition(":")[2]: {**row, **shared} for row in found["rows"]}


def _printed(command: Sequence[str]) -> Row:
    ran = subprocess.run([sys.executable, "-m", "fairlap", *command], capture_output=True, text=True, check=False)
    if not ran.stdout:
        raise RuntimeError(f"fairlap {' '.join(command)}: {ran.stderr.strip()}")
    printed: Row = json.loads(ran.stdout)
    return printed


def by_hand(
    case: Case, contestant: str, threads: int, row: Row, models: Path, cores: Sequence[int], device: str
) -> float:
    command = case.by_hand(contestant, threads, row, models)
    ports = dict(zip(PORTS, map(str, free_ports(len(PORTS))), strict=True))
    memory = CONTROLLED_MEMORY if case.is_race else {}
    variables = {**os.environ, **OFFLINE, **memory, **ports, DEVICE: device}
    ran = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env=variables,
        timeout=LIMIT_S,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    if ran.returncode:
        raise RuntimeError(f"{' '.join(command)}: {ran.stderr.strip()}")
    return float(json.loads(ran.stdout.splitlines()[-1]))


def agreements_of(pairs: Sequence[Pair], cases: Sequence[Case]) -> list[Agreement]:
    """Of all pairs, in the order of the cases."""
    by_row: dict[tuple[str, int, str], list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_row[pair.case, pair.threads, pair.contestant].append(pair)
    return [
        agreement_of(by_row[case.name, threads, contestant], case.allowed)
        for case in cases
        for threads in case.threads
        for contestant in case.contestants
        if (case.name, threads, contestant) in by_row
    ]


def agreement_of(pairs: Sequence[Pair], allowed: float) -> Agreement:
    """Compute the centre of the ratios after Hodges and Lehmann, and the interval of the signed-rank test."""
    logs = np.log([pair.fairlap / pair.by_hand for pair in pairs])
    walsh = signed_rank.walsh_averages(logs)
    low, high = signed_rank.interval(walsh, LEVEL)
    first, middle = pairs[0], float(np.median([pair.by_hand for pair in pairs]))
    ratio, ends = float(np.exp(signed_rank.centre(walsh))), (float(np.exp(low)), float(np.exp(high)))
    return Agreement(first.case, first.contestant, first.threads, len(pairs), middle, ratio, *ends, allowed)


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(each.getsockname()[1]) for each in held]
