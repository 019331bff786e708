"""Whether works that share processes have the ratios that they have in processes of their own.

python -m tests.trust.shared_processes                                 20 works, 12 blocks of each kind
python -m tests.trust.shared_processes --works 6 --blocks 6 --on jax,openvino
python -m tests.trust.shared_processes --blocks 0                      only the table of --out so far

Two races of the same works run in turns on the same machine, a block of every work in fresh processes and then one in
shared ones, or the other way round. A contestant that leaves something for the next work is found: tests/trust/
test_shared_processes.py has one. Exit status 1 if more works differ at 5 % than 5 % of them, and more than one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from fairlap.race.planning.plan import Measuring, Plan
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.race import Race
from fairlap.request.names import Contestants
from fairlap.request.work import Fresh, Work
from scipy.stats import t, ttest_1samp  # type: ignore[import-untyped,unused-ignore]

WORKS = (
    *(Work("mlp", batch) for batch in (1, 8, 64)),
    *(Work("digits", batch) for batch in (1, 64)),
    *(Work("tabular", batch) for batch in (1, 64)),
    *(Work("mnist", batch) for batch in (1, 16)),
    *(Work("convnet", batch) for batch in (1, 4, 8)),
    *(Work(model, 1) for model in ("softmax", "layernorm", "attention", "conv2d", "gemm", "triad")),
    Work("characters", 1),
    Work("mobilenet_v2", 1),
)
KINDS: tuple[Fresh, ...] = ("every", "never")
_LEVEL = 0.05


@dataclass(frozen=True)
class RatioOfBlock:
    """The logarithm of a ratio of times, second contestant over first, in one block of one work."""

    contestants: str
    work: str
    threads: int
    seed: int
    block: int  # of the work, from 0
    fresh: Fresh
    log_ratio: float
    seconds: tuple[float, float]  # of a call


@dataclass(frozen=True)
class Compared:
    """One work, by pairs of blocks that ran one after the other."""

    work: str
    blocks: int
    fresh: tuple[float, float, float]  # the ratio and its interval at 95 %
    shared: tuple[float, float, float]
    change: float  # of the logarithm
    p: float

    @property
    def differs(self) -> bool:
        return self.p < _LEVEL


def planned(contestants: str, works: Sequence[Work], blocks: int, *, threads: int, seed: int, fresh: Fresh) -> Plan:
    return draw_plan(
        Contestants(contestants),
        tuple(works),
        blocks=blocks,
        conditions="controlled",
        threads=threads,
        available_cores=tuple(sorted(os.sched_getaffinity(0))),
        seed=seed,
        until_decided=True,
        fresh=fresh,
        measuring=Measuring(),
    )


def ratios(plans: Sequence[Plan], took_s: dict[Fresh, float] | None = None) -> Iterator[list[RatioOfBlock]]:
    """Of one block of every work in both kinds of processes, again and again."""
    races = [Race(plan) for plan in plans]
    works = len(plans[0].works)
    took_s = {} if took_s is None else took_s
    with ExitStack() as stack:
        running = [stack.enter_context(closing(race.in_blocks())) for race in races]
        for block in range(len(plans[0].blocks) // works):
            for place in (0, 1) if block % 2 else (1, 0):
                began_s = time.monotonic()
                for _ in range(works):
                    next(running[place], None)
                kind = plans[place].fresh
                took_s[kind] = took_s.get(kind, 0.0) + time.monotonic() - began_s
            yield [each for race in races for each in _of_block(race, block)]


def _of_block(race: Race, block: int) -> Iterator[RatioOfBlock]:
    plan, works = race.plan, len(race.plan.works)
    numbers = {each.number for each in plan.blocks[block * works : (block + 1) * works]}
    here = [process for process in race.processes if process.block in numbers]
    for work in plan.works:
        own = {each.contestant: each for each in here if each.work_id == work.id and each.finished}
        if len(own) < len(plan.contestants):
            continue
        first, second = (own[name.text] for name in plan.contestants)
        rounds = np.log(second.rounds_ns) - np.log(first.rounds_ns)
        yield RatioOfBlock(
            ",".join(name.text for name in plan.contestants),
            work.label,
            plan.threads,
            plan.seed,
            block,
            plan.fresh,
            float(np.median(rounds)),
            (first.headline_ns / 1e9, second.headline_ns / 1e9),
        )


def compared(found: Sequence[RatioOfBlock]) -> list[Compared]:
    """Of all works with at least three pairs of blocks."""
    result = []
    for work in dict.fromkeys(each.work for each in found):
        arms = [{(e.seed, e.block): e.log_ratio for e in found if (e.work, e.fresh) == (work, kind)} for kind in KINDS]
        both = sorted(arms[0].keys() & arms[1].keys())
        if len(both) < 3:
            continue
        fresh, shared = (np.array([arm[each] for each in both]) for arm in arms)
        change = shared - fresh
        p = float(ttest_1samp(change, 0.0).pvalue)
        result.append(Compared(work, len(both), _interval(fresh), _interval(shared), float(change.mean()), p))
    return result


def _interval(logs: np.ndarray) -> tuple[float, float, float]:
    half = float(t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs)))
    middle = float(logs.mean())
    return float(np.exp(middle)), float(np.exp(middle - half)), float(np.exp(middle + half))


def too_many_differ(found: Sequence[Compared]) -> bool:
    return sum(each.differs for each in found) > max(1, _LEVEL * len(found))


def as_table(found: Sequence[Compared], ratios_of_blocks: Sequence[RatioOfBlock]) -> str:
    lines = ["| work | fresh | shared | change | p |", "| --- | --- | --- | --- | --- |"]
    for each in found:
        cells = ["{:.3f} ({:.3f} to {:.3f})".format(*arm) for arm in (each.fresh, each.shared)]
        lines.append(f"| {each.work} | {cells[0]} | {cells[1]} | {100 * np.expm1(each.change):+.1f} % | {each.p:.3f} |")
    changes = np.array([each.change for each in found])
    if len(changes) > 1:
        _, low, high = _interval(changes)
        differ = sum(each.differs for each in found)
        lines += [
            "",
            f"{differ} of {len(found)} works differ at 5 %; on average the ratio changes by "
            f"{100 * np.expm1(changes.mean()):+.2f} % ({100 * (low - 1):+.2f} to {100 * (high - 1):+.2f} %)",
            *(f"time of a call of the {which}, shared over fresh: {text}" for which, text in _times(ratios_of_blocks)),
        ]
    return "\n".join(lines)


def _times(found: Sequence[RatioOfBlock]) -> Iterator[tuple[Literal["first", "second"], str]]:
    """By contestant, over all works."""
    arms = [{(e.work, e.seed, e.block): np.log(e.seconds) for e in found if e.fresh == kind} for kind in KINDS]
    both = arms[0].keys() & arms[1].keys()
    for place, which in enumerate(("first", "second")):
        works = dict.fromkeys(work for work, _, _ in both)
        changes = [
            float(np.mean([arms[1][key][place] - arms[0][key][place] for key in both if key[0] == work]))
            for work in works
        ]
        yield which, "{:.3f} ({:.3f} to {:.3f})".format(*_interval(np.array(changes)))  # type: ignore[misc]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.trust.shared_processes")
    parser.add_argument("--works", type=int, default=len(WORKS))
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--on", default="torch,onnxruntime")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/trust"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / "shared-processes.jsonl"
    took_s: dict[Fresh, float] = {}
    works = WORKS[: given.works]
    plans = (
        [planned(given.on, works, given.blocks, threads=given.threads, seed=given.seed, fresh=kind) for kind in KINDS]
        if given.blocks
        else []
    )
    for found in ratios(plans, took_s) if plans else ():
        with file.open("a") as kept:
            kept.writelines(json.dumps(asdict(each)) + "\n" for each in found)
        print({kind: f"{seconds:.0f} s" for kind, seconds in took_s.items()}, flush=True)
    lines = file.read_text().splitlines() if file.exists() else []
    every = [RatioOfBlock(**{**json.loads(line), "seconds": tuple(json.loads(line)["seconds"])}) for line in lines]
    every = [each for each in every if (each.contestants, each.threads) == (given.on, given.threads)]
    result = compared(every)
    print(as_table(result, every))
    sys.exit(too_many_differ(result))


if __name__ == "__main__":
    main()
