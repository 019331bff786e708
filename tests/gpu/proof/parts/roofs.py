"""The roofs of the device, and the kernels of a profile: each compared with something that owes nothing to it.

Arithmetic is compared with PyTorch's matrix products, bandwidth and links with the driver's own copies, and the kernels
in the device's records with a span between events.
"""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import Any

from ..driver import MIB, PrimaryContext, Spinner, device_copy_bytes_per_s, rates_gb_per_s
from ..json_lines import run_and_collect
from ..record import Deadline, NotHere, PartRecord, Step
from .roof_products import PYTORCH

DEVICE = "cuda:0"
SECONDS = 0.6
LEAST_OF_A_PRODUCT, MOST_OF_A_PRODUCT = 0.98, 1.6
LEAST_OF_A_COPY, MOST_OF_A_COPY = 0.95, 1.25
COPIED_MIB = 1024
LEAST_OF_A_LINK, MOST_OF_A_LINK = 0.97, 1.05
LINK_MIB = 64
SPINS_NS = (20_000, 200_000, 1_000_000)
CALLS = 30
OFF_BY, OFF_BY_NS = 0.02, 20_000  # starting and ending three kernels takes some microseconds each
PINNED_WAYS = {"host to device": False, "device to host": True}
_LONGEST_S, _REST_S = 45.0, 8.0


def run(record: PartRecord, deadline: Deadline) -> None:
    context = PrimaryContext()
    steps = [
        Step("roofs", 22, partial(_roofs, record)),
        Step("copies on the device", 3, partial(_copies, record, context)),
        Step("copies from pinned memory", 3, partial(_pinned_copies, record, context)),
        Step("products of PyTorch", 25, partial(_products, record, deadline)),
        Step("arithmetic against products", 0, partial(_against_products, record)),
        Step("bandwidth against copies", 0, partial(_against_copies, record)),
        Step("links against copies", 0, partial(_against_pinned, record)),
        Step("kernels of a profile", 8, partial(_profile, record, context)),  # last: CUPTI stays active
    ]
    record.take(steps, deadline)
    context.synchronize()


def _roofs(record: PartRecord) -> None:
    from fairlap.machine.hardware.device_links import share_of_pcie
    from fairlap.machine.hardware.device_roofs import measured_on_device

    found = measured_on_device(DEVICE, SECONDS)
    for kind, roofs, by in (
        ("op/s", found.operations_per_s, found.instructions),
        ("B/s", found.bytes_per_s, found.triad_instructions),
    ):
        for name, roof in roofs.items():
            record.row("roofs", roof=name, value=roof.value, low=roof.low, high=roof.high, unit=kind, by=by[name])
    for way, link in found.links.items():
        rate, share = link.bytes_per_s, share_of_pcie(found, way)
        figures = {"value": rate.value, "low": rate.low, "high": rate.high, "by": link.by, "share_of_pcie": share}
        record.row("links", way=way, trained_to=str(found.pcie or ""), **figures)
    for name, reason in found.absent.items():
        record.row("roofs", roof=name, value=None, low=None, high=None, unit="", by=reason)


def _copies(record: PartRecord, context: PrimaryContext) -> None:
    size = min(COPIED_MIB * MIB, context.free_bytes() // 8)
    record.row("copies", bytes=size, read_and_written_bytes_per_s=device_copy_bytes_per_s(context, size))


def _pinned_copies(record: PartRecord, context: PrimaryContext) -> None:
    for way, back in PINNED_WAYS.items():
        rates = rates_gb_per_s(context, LINK_MIB * MIB, pinned=True, back=back)
        record.row("copies from pinned memory", way=way, gb_per_s=median(rates), least=min(rates))


def _products(record: PartRecord, deadline: Deadline) -> None:
    limit_s = min(_LONGEST_S, deadline.left_s() - _REST_S)
    each = lambda figures: record.row("products", **figures)  # noqa: E731
    run_and_collect("tests.gpu.proof.parts.roof_products", limit_s=limit_s, each=each)


def _against_products(record: PartRecord) -> None:
    fastest: dict[str, dict[str, Any]] = {}
    for row in record.rows("products"):
        before = fastest.get(row["number_type"])
        if row["operations_per_s"] and (before is None or row["operations_per_s"] > before["operations_per_s"]):
            fastest[row["number_type"]] = row
    for row in record.rows("roofs"):
        if row["unit"] == "B/s":
            continue
        product = fastest.get(row["roof"], {})
        by = product.get("by", PYTORCH)
        _ratio(
            record,
            f"{row['roof']}: the roof over the fastest product",
            row["value"],
            product.get("operations_per_s"),
            (LEAST_OF_A_PRODUCT, MOST_OF_A_PRODUCT),
            why=row["by"] if by == PYTORCH else f"{row['by']}; the product by {by}",
        )


def _against_copies(record: PartRecord) -> None:
    copied = [row["read_and_written_bytes_per_s"] for row in record.rows("copies")]
    memory = next((row for row in record.rows("roofs") if row["roof"] == "memory"), None)
    if memory is None:
        raise NotHere("the roofs were not measured")
    limits = (LEAST_OF_A_COPY, MOST_OF_A_COPY)
    _ratio(
        record, "memory: the roof over a copy on the device", memory["value"], max(copied, default=None), limits, why=""
    )


def _against_pinned(record: PartRecord) -> None:
    measured = {row["way"]: row["value"] for row in record.rows("links")}
    if not measured:
        raise NotHere("the links were not measured")
    copied = {row["way"]: row["gb_per_s"] * 1e9 for row in record.rows("copies from pinned memory")}
    limits = (LEAST_OF_A_LINK, MOST_OF_A_LINK)
    for way in PINNED_WAYS:
        _ratio(record, f"{way}: the link over copies", measured.get(way), copied.get(way), limits, why="")


def _ratio(
    record: PartRecord,
    goal: str,
    roof: float | None,
    other: float | None,
    limits: tuple[float, float],
    *,
    why: str,
) -> None:
    ratio = roof / other if roof and other else None
    record.goal(
        goal,
        f"{limits[0]:g} to {limits[1]:g}",
        ratio,
        "",
        reached=None if ratio is None else limits[0] <= ratio <= limits[1],
        why=why if roof is None or other else "there is no figure to compare with",
    )


def _profile(record: PartRecord, context: PrimaryContext) -> None:
    """Of calls with three kernels that spin for known times, on one stream, behind a closed gate and by records."""
    from fairlap.engine.cuda.call_records import recorded_calls
    from fairlap.engine.cuda.stream_calls import time_on_stream
    from fairlap.errors import NotAvailable

    spinner, stream = Spinner(), context.new_stream()

    def call() -> None:
        for length_ns in SPINS_NS:
            spinner.spin_ns(stream, length_ns)

    def completed_call() -> None:
        call()
        context.synchronize()

    span = time_on_stream(call, stream=stream, samples=CALLS, warmup=5, calls_per_sample=1, method="device_span")
    try:
        found = recorded_calls(completed_call, CALLS, 0)
    except NotAvailable as absent:
        raise NotHere(str(absent)) from None
    complete = [each for each in found if each.is_complete]
    sums = [float(sum(length for *_, length in each.activities)) for each in complete]
    kernels = {len(each.activities) for each in complete}
    difference: Any = None
    if sums:
        sum_ns = median(sums)
        difference = sum_ns / span.median_ns - 1
        record.row(
            "kernels of a profile",
            calls=len(complete),
            lost=len(found) - len(complete),
            kernels_of_a_call="/".join(map(str, sorted(kernels))),
            kernel_sum_ns=sum_ns,
            device_span_ns=span.median_ns,
            spun_ns=sum(SPINS_NS),
        )
    record.goal(
        "the kernels of a profile against a gated span of the same calls",
        f"+- {OFF_BY:.0%} or {OFF_BY_NS // 1000} us, {len(SPINS_NS)} kernels a call",
        difference,
        "",
        reached=None
        if difference is None
        else kernels == {len(SPINS_NS)}
        and (abs(difference) <= OFF_BY or abs(difference) * span.median_ns <= OFF_BY_NS),
        why="" if sums else "every record was lost",
    )
