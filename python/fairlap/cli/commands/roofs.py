"""``fairlap roofs``: the most operations and bytes per second that this machine reaches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlap.cli.output import print_note, print_result
from fairlap.cli.output_options import JSON, OUTPUT_JSON, writable
from fairlap.quantity_text import count, number, size

if TYPE_CHECKING:
    from fairlap.machine.roofs import Roof, Roofs


@click.command("roofs")
@click.option("--threads", type=int, help="Threads that work at once.  [default: one, and all cores]")
@click.option("--again", is_flag=True, help="Measure again instead of reading what was measured before.")
@OUTPUT_JSON
@JSON
def command(threads: int | None, again: bool, output: tuple[Path, ...], as_json: bool) -> None:
    """Measure this machine's limits: arithmetic by number type, and bandwidth of caches and memory.

    Measured once in some seconds, and read from the user's cache afterwards.
    """
    from fairlap.machine.roofs import kept_roofs, roofs_of, usable_cores

    writable(output, only=".json")
    found = []
    for each in [threads] if threads is not None else sorted({1, len(usable_cores())}):
        if again or kept_roofs(each) is None:
            print_note(f"measuring with {count(each, 'thread')}, which takes some seconds")
        found.append(roofs_of(each, again=again))
    document = [_document(roofs) for roofs in found]
    print_result(document, "\n\n".join(_text(roofs) for roofs in found), as_json=as_json, output=output)


def _document(roofs: Roofs) -> dict[str, Any]:
    import msgspec

    ridges = {name: roofs.ridge(name) for name in roofs.operations_per_s}
    return {**msgspec.to_builtins(roofs), "ridge_operations_per_byte": ridges}


def _text(roofs: Roofs) -> str:
    lines = [f"{count(roofs.threads, 'thread')}, measured {roofs.measured_at}"]
    for name, roof in roofs.operations_per_s.items():
        ridge = roofs.ridge(name)
        meets = f"; memory is the limit below {number(ridge)} operations per byte" if ridge else ""
        lines.append(f"{name:<9}{_figures(roof, 'op/s')}  {roofs.instructions[name]}{meets}")
    for level, roof in roofs.bytes_per_s.items():
        held = f" ({size(roofs.cache_bytes[level])})" if level in roofs.cache_bytes else ""
        lines.append(f"{level:<9}{_figures(roof, 'B/s')}  {roofs.triad_instructions.get(level, '')}{held}")
    lines += [f"{name:<9}absent: {reason}" for name, reason in roofs.absent.items()]
    return "\n".join(lines)


def _figures(roof: Roof, unit: str) -> str:
    """With one unit for all, so that the columns compare: 10^9."""
    interval = f"[{roof.low / 1e9:.1f}, {roof.high / 1e9:.1f}]"
    return f"{roof.value / 1e9:9,.1f} G{unit:<4} {interval:<18}"
