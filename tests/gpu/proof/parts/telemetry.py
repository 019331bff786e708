"""Power and energy: the cost of reading them, their update rate, and how well two methods agree."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from typing import Any

from ...probes.energy_counter import Nvml
from ..driver import Spinner
from ..json_lines import run_and_collect
from ..record import Deadline, NotHere, PartRecord, Step

CALIBRATED_S, REST_S = 4.0, 3.0
AGREEMENT: tuple[tuple[float, float], ...] = ((1.0, 0.05), (5.0, 0.02), (10.0, 0.01))
"""Seconds of a steady load, and the largest accepted difference."""
TRIALS_OF_EACH = 3
LOOP_NS = 100_000
CORE_SHARE_S = 15.0
ROUNDS, SECONDS_OF_A_ROUND = 20, 0.4
MOST_DISTURBED = {"p50": 0.001, "p99": 0.005}
MOST_OF_A_CORE = 0.001
_SIZE = 8192
_IN_FLIGHT_S = 0.02
COUNTER, INSTANT, AVERAGE = "energy_j", "power_instant_w", "power_average_w"


def run(record: PartRecord, deadline: Deadline) -> None:
    steps = (
        Step("probe energy_counter", 30, partial(_probe, record, deadline)),
        Step("the cost of each field", 12, partial(_calibrated, record)),
        Step("power at rest", 8, partial(_at_rest, record)),
        *(
            Step(
                f"energy of {seconds:g} s of a steady load",
                TRIALS_OF_EACH * (seconds + 2) + 3,
                partial(_energy, record, seconds, most),
            )
            for seconds, most in AGREEMENT
        ),
        Step("the sampler's share of a core", CORE_SHARE_S + 5, partial(_share_of_a_core, record)),
        Step("disturbance of a loop of 100 us", 2 * ROUNDS * SECONDS_OF_A_ROUND + 10, partial(_disturbance, record)),
    )
    record.take(steps, deadline)


def _probe(record: PartRecord, deadline: Deadline) -> None:
    def keep(figures: dict[str, Any]) -> None:
        record.row("sensors by NVML alone" if "sensor" in figures else "bursts by NVML alone", **figures)

    run_and_collect("tests.gpu.probes.energy_counter", limit_s=min(120.0, deadline.left_s()), each=keep)


def _sampler(**settings: Any) -> Any:
    if find_spec("fairlap.engine.sampling.telemetry") is None:
        raise NotHere("this build of the engine has no sampler")
    return import_module("fairlap.engine.sampling.telemetry").Sampler(
        nvml_library=os.environ.get("FAIRLAP_LIBNVML", ""), **settings
    )


def _board(sampler: Any) -> str:
    """Return the name of the first GPU's source."""
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
                record.row("fields that are absent", source=source.name, field=field.name, note=field.absent_because)
        if source.absent_because:
            record.row("fields that are absent", source=source.name, field="", note=source.absent_because)
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
                note=each.period_unknown_because or each.window_unknown_because,
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
            figures = _energy_by(sampler, readings, board, field, begin, end)
            seconds = (end - begin) / 1e9
            record.row(
                "power at rest",
                field=field,
                watts=figures["joules"] and figures["joules"] / seconds,
                note=figures["note"],
            )


def _energy(record: PartRecord, seconds: float, most: float) -> None:
    """Read the counter here, by NVML alone: where that is expensive the sampler reads it too rarely."""
    load, differences, nvml = SteadyLoad(), [], Nvml()
    with _sampler() as sampler:
        board = _board(sampler)
        for trial in range(TRIALS_OF_EACH):
            with load:
                time.sleep(1.0)  # until the load is steady
                begin_mj, begin = nvml.energy_mj(), sampler.mark(trial)
                time.sleep(seconds)
                end_mj, end = nvml.energy_mj(), sampler.mark(trial)
                time.sleep(0.3)  # until the power has been read once more
            figures = {
                COUNTER: _energy_between(begin_mj, end_mj),
                INSTANT: _energy_by(sampler, sampler.collect(), board, INSTANT, begin, end),
            }
            joules = [figures[field]["joules"] for field in (COUNTER, INSTANT)]
            share = joules[1] / joules[0] - 1 if joules[0] and joules[1] else None
            if share is not None:
                differences.append(share)
            for field in figures:
                record.row(
                    "energy of a steady load", seconds=(end - begin) / 1e9, trial=trial, field=field, **figures[field]
                )
    worst = max(map(abs, differences), default=None)
    record.goal(
        f"energy of {seconds:g} s: integrated instant power against the counter",
        f"<= {most:.0%}",
        worst,
        "",
        reached=None if worst is None else worst <= most,
        why=f"shares {', '.join(f'{each:+.2%}' for each in differences)}" if differences else "no trial gave both",
    )


def _energy_between(begin_mj: int | None, end_mj: int | None) -> dict[str, Any]:
    if begin_mj is None or end_mj is None:
        return {"joules": None, "readings": 0, "note": "this device has no energy counter"}
    return {"joules": (end_mj - begin_mj) / 1e3, "readings": 2, "note": ""}


def _energy_by(sampler: Any, readings: Any, board: str, field: str, begin: int, end: int) -> dict[str, Any]:
    from fairlap.errors import FairlapError

    try:
        found = sampler.energy(readings, board, field, begin, end)
    except FairlapError as absent:
        return {"joules": None, "low_j": None, "high_j": None, "readings": 0, "note": str(absent)}
    return {
        "joules": found.joules,
        "low_j": found.low_j,
        "high_j": found.high_j,
        "readings": found.readings,
        "note": found.unresolved_because,
    }


def _disturbance(record: PartRecord) -> None:
    """Time a kernel of about 100 us with and without the sampler, in turns."""
    from fairlap.engine.timed_calls import time_calls

    from ..driver import PrimaryContext

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
        for sampled in (number % 2 == 0, number % 2 == 1):  # so that neither is always first
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
        time.sleep(1.0)  # exclude its start
        before, begun = sampler.counts["cpu_ns"], time.perf_counter_ns()
        time.sleep(CORE_SHARE_S)
        share = (sampler.counts["cpu_ns"] - before) / (time.perf_counter_ns() - begun)
    record.goal("the sampler's share of a core", f"<= {MOST_OF_A_CORE:.1%}", share, "", reached=share <= MOST_OF_A_CORE)


class SteadyLoad:
    """Large products of matrices back to back, on a thread that stays a little ahead of the device."""

    def __init__(self) -> None:
        try:
            import torch
        except ImportError:
            raise NotHere(
                "PyTorch, whose products of matrices are the steady load, is not installed", "torch"
            ) from None
        if not torch.cuda.is_available():
            raise NotHere("this PyTorch has no CUDA, and its products of matrices are the steady load", "torch")
        self._torch: Any = torch
        a = torch.randn(_SIZE, _SIZE, device="cuda", dtype=torch.bfloat16)
        out = torch.empty_like(a)
        self._call: Callable[[], Any] = lambda: torch.mm(a, a, out=out)
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        for _ in range(3):
            self._call()
        torch.cuda.synchronize()

    def once(self) -> None:
        self._call()
        self._torch.cuda.synchronize()

    def __enter__(self) -> SteadyLoad:
        self._ending.clear()
        self._thread = threading.Thread(target=self._keep_busy)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
        self._torch.cuda.synchronize()

    def _keep_busy(self) -> None:
        begun = time.perf_counter()
        self.once()
        each_s = max(1e-4, time.perf_counter() - begun)
        ahead = max(2, round(_IN_FLIGHT_S / each_s))
        last: list[Any] = []
        while not self._ending.is_set():
            self._call()
            event = self._torch.cuda.Event()
            event.record()
            last.append(event)
            if len(last) > ahead:
                last.pop(0).synchronize()
