"""``fairlap roofs``: the most operations and bytes per second that this machine reaches."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from fairlap import quantity_text
from fairlap.cli.help import Command
from fairlap.cli.options.output_options import JSON, OUTPUT_JSON, writable
from fairlap.cli.options.values import DEVICE
from fairlap.cli.output import print_note, print_result
from fairlap.errors import InvalidRequest
from fairlap.machine.hardware.device_links import share_of_pcie
from fairlap.machine.hardware.gpu_links import PcieLink
from fairlap.machine.hardware.instructions import measured_name, not_measured
from fairlap.machine.hardware.roofs import Roof, Roofs
from fairlap.machine.race_lock.lock import one_race
from fairlap.printed_document import PrintedDocument
from fairlap.quantity_text import count, number, size

_MANY = 1e13  # operations per second, more than a CPU's


class RoofsWithRidges(Roofs, frozen=True, kw_only=True):
    ridge_operations_per_byte: dict[str, float | None]  # by number type: memory is the limit of work that does fewer


class RoofsDocument(PrintedDocument, frozen=True, tag="fairlap.roofs/1"):
    roofs: list[RoofsWithRidges]  # one for each number of threads, or of the device


@click.command(
    "roofs",
    cls=Command,
    examples="""
fairlap roofs
    Measure what this processor can reach.
""",
)
@click.option("--threads", type=int, help="Threads that work at once.  [default: one, and all cores]")
@click.option("--device", type=DEVICE, default="cpu", help="cpu, cuda or cuda:N.  [default: cpu]")
@click.option("--again", is_flag=True, help="Measure again instead of reading what was measured before.")
@OUTPUT_JSON
@JSON
def command(threads: int | None, device: str, again: bool, output: tuple[Path, ...], as_json: bool) -> None:
    """Measure this machine's limits: arithmetic by number type, and bandwidth of caches and memory.

    Measured once in some seconds, and read from the user's cache afterwards.
    """
    writable(output, only=(".json",))
    found = _of_cpu(threads, again) if device == "cpu" else _of_device(str(device), threads, again)
    document = RoofsDocument([_with_ridges(roofs) for roofs in found])
    prefix = "T" if any(roof.value >= _MANY for roofs in found for roof in roofs.operations_per_s.values()) else "G"
    print_result(document, "\n\n".join(_text(roofs, prefix) for roofs in found), as_json=as_json, output=output)


def _of_device(device: str, threads: int | None, again: bool) -> list[Roofs]:
    from fairlap.machine.hardware.device_roofs import kept_roofs_of_device, peers_to_measure, roofs_with_peers

    if threads is not None:
        raise InvalidRequest(f"--threads is for the CPU; leave it out with --device {device}")
    kept = None if again else kept_roofs_of_device(device)
    peers = [f"cuda:{number}" for number in peers_to_measure(device, kept)]
    if kept is not None and not peers:
        return [roofs_with_peers(device)]
    with ExitStack() as stack:
        for each in sorted((device, *peers)):  # which would be slower beside another race, and disturb it
            stack.enter_context(one_race(each))
        print_note(
            f"measuring {' and its links to '.join(filter(None, (device, ', '.join(peers))))}, which takes some seconds"
        )
        return [roofs_with_peers(device, again=again)]


def _of_cpu(threads: int | None, again: bool) -> list[Roofs]:
    from fairlap.machine.hardware.roofs import kept_roofs, roofs_of, usable_cores

    found = []
    for each in [threads] if threads is not None else sorted({1, len(usable_cores())}):
        if not again and kept_roofs(each) is not None:
            found.append(roofs_of(each, again=again))
            continue
        with one_race():  # which would be slower beside another, and disturb it
            print_note(f"measuring with {count(each, 'thread')}, which takes some seconds")
            found.append(roofs_of(each, again=again))
    return found


def _with_ridges(roofs: Roofs) -> RoofsWithRidges:
    ridges = {name: roofs.ridge(name) for name in roofs.operations_per_s}
    return RoofsWithRidges(**msgspec.structs.asdict(roofs), ridge_operations_per_byte=ridges)


def _text(roofs: Roofs, prefix: str) -> str:
    where = f"{roofs.device} ({roofs.device_name})" if roofs.threads is None else count(roofs.threads, "thread")
    lines = [f"{where}, measured {roofs.measured_at}"]
    rows: list[tuple[str, _Figures, str]] = []
    for name, roof in roofs.operations_per_s.items():
        ridge = roofs.ridge(name)
        meets = f"; memory is the limit below {number(ridge)} operations per byte" if ridge else ""
        rows.append((name, _figures(roof, "op/s", prefix), f"{_instructions(roofs, name)}{meets}"))
    for level, roof in roofs.bytes_per_s.items():
        held = f" ({size(roofs.cache_bytes[level])})" if level in roofs.cache_bytes else ""
        by = measured_name(roofs.triad_instructions.get(level, ""))
        rows.append((level, _figures(roof, "B/s", "G"), f"{by}{held}"))
    lines += _aligned(rows, least=9)
    if roofs.links and roofs.pcie is not None:
        lines.append(f"link     {roofs.pcie}{_allowed(roofs.pcie)}")
    rows = []
    for way, link in roofs.links.items():
        share = share_of_pcie(roofs, way)
        of = "" if share is None else f", {quantity_text.share(share)} of what it allows"
        peer = f" ({link.peer})" if link.peer else ""
        rows.append((way, _figures(link.bytes_per_s, "B/s", "G"), f"{link.by}{of}{peer}"))
    lines += _aligned(rows, least=17)
    lines += [f"{name:<9}absent: {reason}" for name, reason in roofs.absent.items()]
    return "\n".join(lines)


def _allowed(pcie: PcieLink) -> str:
    now, most = pcie.bytes_per_s, pcie.most_bytes_per_s
    if now is None or most is None:
        return ""
    return f": {now / 1e9:.1f} GB/s each way" + (f" of {most / 1e9:.1f}" if now < most else "")


def _instructions(roofs: Roofs, number_type: str) -> str:
    """Name those of the roof, and what else the processor has for the type."""
    others = not_measured(roofs.instructions[number_type], roofs.processor_has.get(number_type, ()))
    return measured_name(roofs.instructions[number_type]) + (f" (also {', '.join(others)})" if others else "")


class _Figures(NamedTuple):
    value: str
    unit: str
    interval: str


def _figures(roof: Roof, unit: str, prefix: str) -> _Figures:
    """With one unit for all of a kind, so that the columns compare: 10^9, or 10^12 with another decimal."""
    scale, decimals = (1e12, 2) if prefix == "T" else (1e9, 1)
    low, high = (f"{end / scale:,.{decimals}f}" for end in (roof.low, roof.high))
    return _Figures(f"{roof.value / scale:,.{decimals}f}", f"{prefix}{unit}", f"[{low}, {high}]")


def _aligned(rows: Sequence[tuple[str, _Figures, str]], *, least: int) -> list[str]:
    """Make each column as wide as its widest cell; ``least`` is the width of the names at least."""
    if not rows:
        return []
    name = max(least, 1 + max(len(each) for each, _, _ in rows))
    value, unit, interval = (max(map(len, column)) for column in zip(*(figures for _, figures, _ in rows), strict=True))
    return [
        f"{each:<{name}}{figures.value:>{value}} {figures.unit:<{unit}} {figures.interval:<{interval}}  {by}".rstrip()
        for each, figures, by in rows
    ]
