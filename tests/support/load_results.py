"""Results of races under load, from made-up searches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from fairlap.race.run import Run
from fairlap.request.fields.load import LoadRequest
from fairlap.request.units import Seconds
from fairlap.results.results import Results, results_of
from fairlap.scenarios.load.load_messages import LoadFound, LoadTimes, LoadTrial, TokenTimes
from fairlap.scenarios.process_result import ProcessResult
from runs_for_rows import a_process
from runs_of_precisions import planned

MS = 1e6


def trial(kind: str, rate: float | None, p99_ms: float, *, served: float = 0.0) -> LoadTrial:
    times = LoadTimes(0.5 * p99_ms * MS, 0.8 * p99_ms * MS, p99_ms * MS, 1 * MS, 2e4, mean_ns=0.6 * p99_ms * MS)
    return LoadTrial(kind, rate, 1000, 5, "met", 0, served, 2.0, times, 1.5)  # type: ignore[arg-type]


def found(rate: float) -> LoadFound:
    trials = (
        trial("capacity", None, 300, served=1.2 * rate),
        trial("lone", rate / 4, 4),
        trial("search", rate, 19),
        trial("at_largest_rate", rate, 18),
        trial("curve", 0.25 * rate, 5),
        trial("curve", 0.75 * rate, 9),
    )
    return LoadFound(trials, rate, "bound")


NOTHING = LoadFound((trial("capacity", None, 300, served=50.0),), None, "lone_request")
LOAD = LoadRequest(p99=Seconds("20ms"), workers=2)


def raced(load_of: Callable[[str, int], LoadFound], load: LoadRequest | None = LOAD, **options: Any) -> Results:
    plan = planned(load=load, **options)
    processes: list[ProcessResult] = []
    for block in plan.blocks:
        for place in block.order:
            name = plan.contestants[place].text
            process = a_process(block.number, name, 1e6, plan.works[block.work])
            process.load = load_of(name, block.number) if load else None
            processes.append(process)
    return results_of(Run(plan, processes, {}, {}), "r")


RATES: Mapping[str, float] = {"torch": 400.0, "jax": 500.0}


def two(name: str, block: int) -> LoadFound:
    return found(RATES[name] * (1 + 0.002 * (block % 4) + 0.001 * len(name)))


TOKENS = 16


def with_tokens(name: str, block: int) -> LoadFound:
    tokens = TokenTimes(2 * MS, 3 * MS, 1 * MS, 1 * MS)
    whole = two(name, block)
    timed = [
        msgspec.structs.replace(each, times=msgspec.structs.replace(each.times, tokens=tokens))
        for each in whole.trials
        if each.times is not None
    ]
    return msgspec.structs.replace(whole, trials=tuple(timed), limited_by="first_token")


def generated() -> Results:
    load = LoadRequest(p99=Seconds("20ms"), first_token=Seconds("4ms"))
    run = raced(with_tokens, load, models=("characters_generate",)).run
    for process in run.processes:
        process.tokens_per_call = TOKENS
    return results_of(run, "r")
