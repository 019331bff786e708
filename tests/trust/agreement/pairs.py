"""Pairs of one measurement by fairlap and one by hand, in fresh processes, and the ratio of the two.

The loop has its turns next to those of the race, so that both see the machine at the same speed: on a shared machine
that changes by a fifth within seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fairlap.verdict.exact_tests import signed_rank

from .case import Case, Row, in_folder
from .loop import Loop
from .race_in_turns import Offer

LEVEL = 0.05
CHOOSE = "choose"


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
    cases: Sequence[Case], threads: int, files: Path, contestants: Sequence[str], device: str
) -> Iterator[Pair]:
    """Pair cases with one command, which runs once with all of the contestants, with the loops of each of them."""
    with ExitStack() as stack:
        loops: dict[tuple[str, ...], Loop] = {}  # cases of one loop share it

        def command_by_hand(case: Case, contestant: str) -> tuple[str, ...]:
            return tuple(case.loop_command(contestant, threads, files))

        def serve(offer: Offer) -> None:
            """Start the loops when the contestant is prepared, and let them have their turns."""
            own = (case for case in cases if case.is_timed_in(offer.contestant) and case.is_of(offer.model))
            in_turn = {command_by_hand(case, offer.contestant): case for case in own if case.turn_of is not None}
            for command, case in in_turn.items():
                if command not in loops:
                    loop = Loop(command, offer.cores, device, is_stopped=case.is_stopped)
                    loops[command] = stack.enter_context(loop)
                if offer.of == case.turn_of:
                    loops[command].take_turn(offer.given)

        if cases[0].is_race:
            run = raced(command_of(cases[0], threads, contestants, device, files), serve)
            rows, cores = finished_rows(run), cores_of(run)
        else:
            rows, cores = untrusted_rows(cases[0]), sorted(os.sched_getaffinity(0))
        for name, row in rows.items():
            for case in (each for each in cases if each.is_timed_in(name)):
                command = command_by_hand(case, name)
                if case.turn_of is None:
                    loop = loops[command] = Loop(command, cores, device, memory_is_controlled=case.is_race)
                    with loop:
                        loop.take_turn(case.given(row))
                by_hand = case.by_hand_figure(loops[command].turns, row)
                yield Pair(case.name, name, threads, case.figure(row), by_hand)


def command_of(case: Case, threads: int, contestants: Sequence[str], device: str, files: Path = Path()) -> list[str]:
    command = [*in_folder(case.command, files), "--threads", str(threads), "--blocks", "1", "--json", "--quiet"]
    if "--command" not in command:
        command += [] if "--on" in command else ["--on", ",".join(contestants)]
        command += [] if command[0] == CHOOSE else ["--data-seed", "0"]  # a choice is of given items
    return command if device == "cpu" else [*command, "--device", device]


def raced(command: Sequence[str], serve: Callable[[Offer], None]) -> Mapping[str, Any]:
    """Race, with ``serve`` whenever the race hands the machine over, and return the run."""
    offers, for_offers = os.pipe()
    for_returns, returns = os.pipe()
    given = [str(for_offers), str(for_returns), *command]
    with open(offers) as offered, open(returns, "w") as returned, tempfile.TemporaryFile() as output:  # noqa: PTH123
        race = subprocess.Popen(
            [sys.executable, "-m", "tests.trust.agreement.race_in_turns", *given],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=(for_offers, for_returns),
        )
        os.close(for_offers)
        os.close(for_returns)
        try:
            for line in offered:
                serve(Offer(**json.loads(line)))
                print(file=returned, flush=True)
        except BaseException:
            race.terminate()
            raise
        _, errors = race.communicate()
        output.seek(0)
        printed = output.read()
    if not printed:
        raise RuntimeError(f"fairlap {' '.join(command)}: {errors.strip()}")
    run: Mapping[str, Any] = json.loads(printed)
    if "error" in run:
        raise RuntimeError(f"fairlap {' '.join(command)}: {run['error']['message']}")
    return run


def finished_rows(run: Mapping[str, Any]) -> Mapping[str, Row]:
    """By contestant; of a choice, its candidates by model."""
    if "candidates" in run:
        candidates: dict[str, dict[str, Row]] = defaultdict(dict)
        for each in run["candidates"]:
            if has_finished(each):
                candidates[each["contestant"]][Path(each["model"]).stem] = each
        return candidates
    return {row["contestant"]: row for row in run["rows"] if has_finished(row)}


def has_finished(row: Row) -> bool:
    if row["outcome"] != "finished":
        print(f"{row['contestant']}: {row['outcome']}: {row['message']}", file=sys.stderr)
    return bool(row["outcome"] == "finished")


def cores_of(run: Mapping[str, Any]) -> list[int]:
    """Those of the only block; a choice prints none."""
    blocks = run["plan"]["blocks"] if "plan" in run else [{"cores": sorted(os.sched_getaffinity(0))}]
    return list(blocks[0]["cores"])


def untrusted_rows(case: Case) -> Mapping[str, Row]:
    """By the name of the callable alone, with what all of them have in common."""
    command = [sys.executable, "-m", "fairlap", *case.command, "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if not ran.stdout:
        raise RuntimeError(f"{' '.join(command)}: {ran.stderr.strip()}")
    found = json.loads(ran.stdout)
    if found.get("excluded"):
        raise RuntimeError(f"{case.name}: {found['excluded']}")
    print(f"{case.name}: floor {found['floor_ns']:.0f} ns, subtracted: {found['floor_subtracted']}", file=sys.stderr)
    shared = {"calls_per_sample": found["calls_per_sample"]}
    return {row["name"].rpartition(":")[2]: {**row, **shared} for row in found["rows"]}


def agreements_of(pairs: Sequence[Pair], cases: Sequence[Case]) -> list[Agreement]:
    """Of all pairs, in the order of the cases and of their contestants, before slowed ones."""
    by_row: dict[tuple[str, int, str], list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_row[pair.case, pair.threads, pair.contestant].append(pair)
    paired = [pair.contestant for pair in pairs]
    return [
        agreement_of(by_row[case.name, threads, contestant], case.allowed)
        for case in cases
        for threads in case.threads
        for contestant in dict.fromkeys((*case.contestants, *paired))
        if case.is_timed_in(contestant) and (case.name, threads, contestant) in by_row
    ]


def agreement_of(pairs: Sequence[Pair], allowed: float) -> Agreement:
    """Compute the centre of the ratios after Hodges and Lehmann, and the interval of the signed-rank test."""
    logs = np.log([pair.fairlap / pair.by_hand for pair in pairs])
    walsh = signed_rank.walsh_averages(logs)
    low, high = signed_rank.interval(walsh, LEVEL)
    first, middle = pairs[0], float(np.median([pair.by_hand for pair in pairs]))
    ratio, ends = float(np.exp(signed_rank.centre(walsh))), (float(np.exp(low)), float(np.exp(high)))
    return Agreement(first.case, first.contestant, first.threads, len(pairs), middle, ratio, *ends, allowed)
