"""Power and energy: what reading them costs, how often they are new, and how far two ways of measuring agree."""

from __future__ import annotations

import os
import time
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from typing import Any

from .apart import told_apart
from .record import Deadline, NotHere, PartRecord, Step
from .spinner import Spinner
from .steady_load import SteadyLoad

CALIBRATED_S, REST_S = 4.0, 3.0
AGREEMENT = ((1.0, 0.05), (5.0, 0.02), (10.0, 0.01))  # seconds of a steady load, and how far the two may be apart
TRIALS_OF_EACH = 3
LOOP_NS = 100_000
CORE_SHARE_S = 15.0
ROUNDS, SECONDS_OF_A_ROUND = 20, 0.4
MOST_DISTURBED = {"p50": 0.001, "p99": 0.005}
MOST_OF_A_CORE = 0.001
COUNTER, INSTANT, AVERAGE = "energy_j", "power_instant_w", "power_average_w"


def run(record: PartRecord, deadline: Deadline) -> None:
    steps = (
        Step("probe energy_counter", 60, partial(_probe, record, deadline)),
        Step("what each field costs", 20, partial(_calibrated, record)),
        Step("power at rest", 10, partial(_at_rest, record)),
        *(
            Step(f"energy of {seconds:g} s of a steady load", 3 * seconds + 20, partial(_energy, record, seconds, most))
            for seconds, most in AGREEMENT
        ),
        Step("the sampler's share of a core", CORE_SHARE_S + 5, partial(_share_of_a_core, record)),
        Step("disturbance of a loop of 100 us", 2 * ROUNDS * SECONDS_OF_A_ROUND + 15, partial(_disturbance, record)),
    )
    record.take(steps, deadline)


def _probe(record: PartRecord, deadline: Deadline) -> None:
    def keep(told: dict[str, Any]) -> None:
        record.row("sensors by NVML alone" if "sensor" in told else "bursts by NVML alone", **told)

    told_apart("tests.gpu.probes.energy_counter", limit_s=min(120.0, deadline.left_s()), each=keep)


def _sampler(**wishes: Any) -> Any:
    if find_spec("fairlap.engine.telemetry") is None:
        raise NotHere("this build of the engine has no sampler")
    return import_module("fairlap.engine.telemetry").Sampler(
        nvml_library=os.environ.get("FAIRLAP_LIBNVML", ""), **wishes
    )


def _board(sampler: Any) -> str:
    """The source that is the first GPU."""
    for source in sampler.sources:
        if source.name.startswith("nvml:"):
            if source.absent_because:
                raise NotHere(f"{source.name}: {source.absent_because}")
            return str(source.name)
    raise NotHere("the sampler found no NVIDIA board")


def _calibrated(record: PartRecord) -> None:
    sampler = _sampler()
    for source in sampler.sources:
        for field in source.fields:
            if field.absent_because:
                record.row("fields that are absent", source=source.name, field=field.name, told=field.absent_because)
        if source.absent_because:
            record.row("fields that are absent", source=source.name, field="", told=source.absent_because)
    with SteadyLoad():
        for each in sampler.calibration(CALIBRATED_S):
            record.row(
                "fields by the sampler",
                source=each.source,
                field=each.field,
                lane=each.lane,
                call_ns=each.call_ns,
                slowest_call_ns=each.worst_call_ns,
                new_every_s=each.period_s,
                averages_over_s=each.window_s,
                told=each.period_unknown_because or each.window_unknown_because,
            )


def _at_rest(record: PartRecord) -> None:
    with _sampler() as sampler:
        board = _board(sampler)
        time.sleep(REST_S)
        begin = sampler.mark(0)
        time.sleep(REST_S)
        end = sampler.mark(0)
        time.sleep(0.3)
        readings = sampler.collect()
        for field in (COUNTER, INSTANT, AVERAGE):
            told = _energy_by(sampler, readings, board, field, begin, end)
            seconds = (end - begin) / 1e9
            record.row(
                "power at rest", field=field, watts=told["joules"] and told["joules"] / seconds, told=told["told"]
            )


def _energy(record: PartRecord, seconds: float, most: float) -> None:
    load, apart = SteadyLoad(), []
    with _sampler() as sampler:
        board = _board(sampler)
        for trial in range(TRIALS_OF_EACH):
            with load:
                time.sleep(1.0)  # the load is steady before it is looked at
                begin = sampler.mark(trial)
                time.sleep(seconds)
                end = sampler.mark(trial)
                time.sleep(0.3)  # and goes on until the counter has stepped once more
            readings = sampler.collect()
            told = {field: _energy_by(sampler, readings, board, field, begin, end) for field in (COUNTER, INSTANT)}
            joules = [told[field]["joules"] for field in (COUNTER, INSTANT)]
            share = joules[1] / joules[0] - 1 if joules[0] and joules[1] else None
            if share is not None:
                apart.append(share)
            for field in told:
                record.row(
                    "energy of a steady load", seconds=(end - begin) / 1e9, trial=trial, field=field, **told[field]
                )
    worst = max(map(abs, apart), default=None)
    record.goal(
        f"energy of {seconds:g} s: instant power added up beside the counter",
        f"<= {most:.0%}",
        worst,
        "",
        reached=None if worst is None else worst <= most,
        why=f"shares {', '.join(f'{each:+.2%}' for each in apart)}" if apart else "no trial gave both",
    )


def _energy_by(sampler: Any, readings: Any, board: str, field: str, begin: int, end: int) -> dict[str, Any]:
    from fairlap.errors import FairlapError

    try:
        found = sampler.energy(readings, board, field, begin, end)
    except FairlapError as absent:
        return {"joules": None, "low_j": None, "high_j": None, "readings": 0, "told": str(absent)}
    return {
        "joules": found.joules,
        "low_j": found.low_j,
        "high_j": found.high_j,
        "readings": found.readings,
        "told": found.unresolved_because,
    }


def _disturbance(record: PartRecord) -> None:
    """The same loop with the sampler and without, in turns: a kernel of about 100 us, waited for."""
    from fairlap.engine.timed_calls import time_calls

    from .driver_calls import PrimaryContext

    context = PrimaryContext()
    spinner, stream = Spinner(), context.new_stream()

    def loop() -> None:
        spinner.spin_ns(stream, LOOP_NS)
        context.synchronize()

    def quantiles() -> list[float]:
        return time_calls(loop, seconds=SECONDS_OF_A_ROUND, warmup=20, calls_per_sample=1).headline.quantiles(
            (0.5, 0.99)
        )

    shares: dict[str, list[float]] = {name: [] for name in MOST_DISTURBED}
    for number in range(ROUNDS):
        read: dict[bool, list[float]] = {}
        for sampled in (number % 2 == 0, number % 2 == 1):  # neither is always first
            if sampled:
                with _sampler():
                    read[True] = quantiles()
            else:
                read[False] = quantiles()
        for place, name in enumerate(MOST_DISTURBED):
            shares[name].append(read[True][place] / read[False][place] - 1)
        record.row("disturbance", round=number, with_ns=read[True], without_ns=read[False])
    for name, most in MOST_DISTURBED.items():
        ordered = sorted(shares[name])
        low, high = ordered[len(ordered) // 4], ordered[3 * len(ordered) // 4]
        record.goal(
            f"a loop of 100 us with the sampler, longer at its {name}",
            f"<= {most:.1%}",
            median(ordered),
            "",
            reached=median(ordered) <= most,
            why=f"half of {ROUNDS} pairs between {low:+.2%} and {high:+.2%}",
        )


def _share_of_a_core(record: PartRecord) -> None:
    with _sampler() as sampler:
        time.sleep(1.0)  # its start is not its work
        before, begun = sampler.counts["cpu_ns"], time.perf_counter_ns()
        time.sleep(CORE_SHARE_S)
        share = (sampler.counts["cpu_ns"] - before) / (time.perf_counter_ns() - begun)
    record.goal("the sampler's share of a core", f"<= {MOST_OF_A_CORE:.1%}", share, "", reached=share <= MOST_OF_A_CORE)
