"""The engine compared with other timers on the same work, in turns and in fresh processes."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import Any

from ..json_lines import run_and_collect
from ..record import Deadline, PartRecord, Step
from .timers import driver_calls, with_jax, with_torch
from .timers.cases import EMPTY
from .timers.reading import KERNELS, SPAN

ROUNDS = 2  # processes of each timer, since results vary between processes
_LONGEST_S = 90.0
_NEEDS_S = {"torch": 10.0, "jax": 28.0}  # of a process on an H100; JAX compiles each case
_DRIVER_NEEDS_S = 4.0
COST_SHARE = 0.25
OURS, BY_HAND = "fairlap device_span", "torch.cuda.Event"
_REFERENCE = {
    (SPAN, "torch"): OURS,
    (KERNELS, "torch"): "fairlap kernel_sum",
    (SPAN, "jax"): "fairlap context_span, JAX",
    (KERNELS, "jax"): "fairlap kernel_sum, JAX",
}


def run(record: PartRecord, deadline: Deadline) -> None:
    steps = [
        Step(
            f"{name}, process {number}", _NEEDS_S[_framework_of(name)], partial(_timed, record, deadline, name, number)
        )
        for number in range(1, ROUNDS + 1)
        for name in (*with_torch.TIMERS, *with_jax.TIMERS)
    ]
    of_driver = Step("the driver's calls, process 1", _DRIVER_NEEDS_S, partial(_driver_calls, record, deadline))
    record.take([of_driver, *steps, Step("comparison", 0, partial(_compared, record))], deadline)


def _framework_of(timer: str) -> str:
    return "jax" if timer in with_jax.TIMERS else "torch"


def _timed(record: PartRecord, deadline: Deadline, name: str, number: int) -> None:
    framework = _framework_of(name)

    def keep(figures: dict[str, Any]) -> None:
        record.row("readings", method=name, framework=framework, process=number, **figures)

    run_and_collect("tests.gpu.proof.parts.timers", name, limit_s=min(_LONGEST_S, deadline.left_s()), each=keep)


def _driver_calls(record: PartRecord, deadline: Deadline) -> None:
    """Record what each of the driver's calls in a sample costs by itself: a timer can save none of that."""
    each = lambda figures: record.row("the driver's calls", **figures)  # noqa: E731
    module = "tests.gpu.proof.parts.timers.driver_calls"
    run_and_collect(module, limit_s=min(_LONGEST_S, deadline.left_s()), each=each)


def _compared(record: PartRecord) -> None:
    readings = record.rows("readings")
    figures: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in readings:
        if row["ns"] is None:  # every sample was invalid; the reason is in the row
            continue
        figures.setdefault((row["method"], row["case"]), []).append(row)
    medians = {key: median(row["ns"] for row in rows) for key, rows in figures.items()}
    for (method, case), rows in figures.items():
        values = [row["ns"] for row in rows]
        ours = _REFERENCE[rows[0]["quantity"], rows[0]["framework"]]
        reference = medians.get((ours, case)) if ours != method else None
        figure = medians[method, case]
        record.row(
            "side by side",
            case=case,
            method=method,
            quantity=rows[0]["quantity"],
            figure_ns=figure,
            spread_of_processes=(max(values) - min(values)) / figure if len(values) > 1 and figure else None,
            processes=len(values),
            reference=ours if reference else "",
            reference_ns=reference,
            difference_share=figure / reference - 1 if reference else None,
            note=rows[0]["note"],
        )
    _cost(record, readings)


def _cost(record: PartRecord, readings: list[dict[str, Any]]) -> None:
    """Record the host cost of a sample, less the call; and how much of it the driver's calls take."""
    costs: dict[str, list[float]] = {}
    for row in readings:
        if row["case"] == EMPTY and row["host_ns_per_sample"] is not None:
            costs.setdefault(row["method"], []).append(row["host_ns_per_sample"])
    for method, values in costs.items():
        record.row("host cost of a sample", method=method, ns=median(values), of_processes=len(values))
    measured = OURS in costs and BY_HAND in costs
    share = median(costs[OURS]) / median(costs[BY_HAND]) if measured else None
    record.goal(
        "host cost of a sample, as a share of torch.cuda.Event from Python",
        f"<= {COST_SHARE}",
        share,
        "",
        reached=None if share is None else share <= COST_SHARE,
        why=f"{median(costs[OURS]):.0f} ns and {median(costs[BY_HAND]):.0f} ns{_of_driver(record)}"
        if measured
        else "one of them was not measured",
    )


def _of_driver(record: PartRecord) -> str:
    """Add up the driver's calls of either; empty where they were not timed."""
    calls = {row["call"]: row["ns"] for row in record.rows("the driver's calls")}
    if not calls:
        return ""
    ours, by_hand, look = (
        driver_calls.sum_ns(calls, each)
        for each in (driver_calls.OF_A_SAMPLE, driver_calls.OF_A_PAIR, driver_calls.ASKING)
    )
    looks = f"and {look:.0f} ns for each look"
    return f"; the driver's calls take {ours:.0f} ns of the one {looks}, and {by_hand:.0f} ns of the other"
