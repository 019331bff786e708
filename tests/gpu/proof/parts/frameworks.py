"""Which method works for which framework, and what the driver's events can do."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..json_lines import run_and_collect
from ..record import Deadline, PartRecord, Step
from .framework_work import FRAMEWORKS, SEARCH

_LONGEST_S = 120.0
_NEEDS_S = {"torch": 12.0, "cupy": 12.0, "paddle": 12.0, "onnxruntime-tensorrt": 50.0}  # which builds an engine
_PROBES = ("event_quantum", "context_events")
OFF_BY = 0.05
OFF_BY_NS = 100_000  # dispatching the call and waking the host take 30 to 60 us, which a span of the context contains
_HIDE_THEIR_STREAMS = ("jax", "tensorflow")  # they are found as their adapters do


def run(record: PartRecord, deadline: Deadline) -> None:
    steps = [Step(f"probe {name}", 8, partial(_probe, record, deadline, name)) for name in _PROBES]
    steps += [Step(name, _NEEDS_S.get(name, 30.0), partial(_framework, record, deadline, name)) for name in FRAMEWORKS]
    steps += [Step("records beside PyTorch's profiler", 20, partial(_beside_profiler, record, deadline))]
    record.take([*steps, Step("goals", 0, partial(_goals, record))], deadline)


def _probe(record: PartRecord, deadline: Deadline, name: str) -> None:
    run_and_collect(
        f"tests.gpu.probes.{name}",
        limit_s=min(_LONGEST_S, deadline.left_s()),
        each=lambda figures: record.row(f"probe {name}", **figures),
    )


def _framework(record: PartRecord, deadline: Deadline, name: str) -> None:
    figures: list[dict[str, Any]] = []
    try:
        limit_s = min(_LONGEST_S, deadline.left_s())
        run_and_collect("tests.gpu.proof.parts.framework_work", name, limit_s=limit_s, each=figures.append)
    finally:
        busy_ns = next((row["busy_ns"] for row in figures if row.get("busy_ns")), None)
        for row in figures:
            spans = row["method"].startswith(("device_span", "context_span")) and row["ns"]
            record.row(
                "methods",
                case=name,
                **{key: value for key, value in row.items() if key not in ("ns", "busy_ns")},
                figure_ns=row["ns"],
                reference="busy time in records" if spans and busy_ns else "",
                reference_ns=busy_ns if spans else None,
                difference_share=row["ns"] / busy_ns - 1 if spans and busy_ns else None,
            )


def _beside_profiler(record: PartRecord, deadline: Deadline) -> None:
    """Take kernel times before, between and after sessions of PyTorch's profiler, which sets CUPTI's clock."""
    run_and_collect(
        "tests.gpu.proof.parts.beside_profiler",
        limit_s=min(_LONGEST_S, deadline.left_s()),
        each=lambda figures: record.row("records beside PyTorch's profiler", **figures),
    )
    rows = record.rows("records beside PyTorch's profiler")
    lengths = [row["ns"] for row in rows if row["ns"]]
    spread = max(lengths) / min(lengths) - 1 if len(lengths) > 1 else None
    record.goal(
        "kernel times before and after sessions of PyTorch's profiler: spread",
        f"<= {OFF_BY:.0%}",
        spread,
        "",
        reached=None if spread is None else spread <= OFF_BY,
        why="; ".join(f"{row['when']}: {row['note']}" for row in rows if row["note"]),
    )


def _goals(record: PartRecord) -> None:
    rows = record.rows("methods")
    for name in FRAMEWORKS:
        of = {row["method"]: row for row in rows if row["case"] == name}
        if not of:
            continue
        by_context = ["context_span, waited for"] if name in _HIDE_THEIR_STREAMS else []
        for method in ("device_span, gate auto", *by_context):
            row = of.get(method) or of.get(SEARCH, {})
            share = row.get("difference_share")
            record.goal(
                f"{name}: {method} against the busy time in records",
                f"+- {OFF_BY:.0%} or {OFF_BY_NS // 1000} us",
                share,
                "",
                reached=None if share is None else _agrees(row),
                why="" if share is not None else row.get("note") or "one of them was not measured",
            )
        _stream_goal(record, name, of.get("kernel_sum", {}))


def _agrees(row: dict[str, Any]) -> bool:
    """Compare by the share and the time: a longer kernel makes the share small, a shorter one leaves host time."""
    share = abs(row["difference_share"])
    reference_ns = row.get("reference_ns")
    return share <= OFF_BY or (reference_ns is not None and share * reference_ns <= OFF_BY_NS)


def _stream_goal(record: PartRecord, name: str, row: dict[str, Any]) -> None:
    ran_on, handed = row.get("streams"), row.get("handed_over")
    known = bool(ran_on) and handed is not None
    record.goal(
        f"{name}: the stream in the records is the one passed in",
        "the same",
        None,
        "",
        reached=ran_on == [handed] if known else None,
        why=f"ran on {ran_on}, passed {handed}" if known else row.get("note") or "records were not measured",
    )
