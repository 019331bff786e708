"""``fairlap floor``: the resolution, overhead and bias of each timing method."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from fairlap.cli.help import Command
from fairlap.cli.options.output_options import JSON, OUTPUT_JSON
from fairlap.cli.output import print_result
from fairlap.printed_document import PrintedDocument


class CpuFloor(msgspec.Struct, frozen=True):
    source: str
    quantum_ns: float
    overhead_ns: float
    bias_ns: float
    ns_per_tick: float
    calibration_uncertainty_ppm: float
    drift_ppm: float
    drift_resolution_ppm: float
    kernel_clock_source: str
    under_hypervisor: bool
    trusted: bool
    counter_distrust: str | msgspec.UnsetType = msgspec.UNSET  # why the processor's counter is not used


class Floors(PrintedDocument, frozen=True, tag="fairlap.floor/1"):
    """``cuda`` has the figures of each device by name, as its driver and events give them."""

    cpu: CpuFloor
    cuda: list[dict[str, Any]] | None
    cuda_absent: str | msgspec.UnsetType = msgspec.UNSET  # why there is none


@click.command(
    "floor",
    cls=Command,
    examples="""
fairlap floor
    Show the resolution and the overhead of the timers.
""",
)
@OUTPUT_JSON
@JSON
@click.option("--clock", default="auto", help='The CPU clock: "auto", "tsc" or "cntvct", "monotonic_raw".')
def command(output: tuple[Path, ...], as_json: bool, clock: str) -> None:
    """Measure the resolution, overhead and bias of this machine's timers."""
    from fairlap.engine import floor

    floors = floor(clock)
    text = "\n".join([*_cpu_lines(floors["cpu"]), *_cuda_lines(floors)])
    print_result(msgspec.convert(floors, Floors), text, as_json=as_json, output=output)


def _cpu_lines(cpu: dict[str, Any]) -> list[str]:
    where = ", in a virtual machine" if cpu["under_hypervisor"] else ""
    lines = [
        f"cpu    {cpu['source']} (the kernel uses {cpu['kernel_clock_source'] or 'a clock it does not name'}){where}",
        f"       quantum   {cpu['quantum_ns']:6.1f} ns   the step in which readings grow",
        f"       overhead  {cpu['overhead_ns']:6.1f} ns   what a pair of stamps costs a loop",
        f"       bias      {cpu['bias_ns']:6.1f} ns   what a pair reads around nothing; subtracted from every sample",
        f"       drift     {cpu['drift_ppm']:+6.1f} ppm  against the operating system's clock since calibration "
        f"(known to {cpu['drift_resolution_ppm']:.1f} ppm)",
    ]
    if "counter_distrust" in cpu:
        lines.append(f"       the processor's counter is not used: {cpu['counter_distrust']}")
    return lines


def _cuda_lines(floors: dict[str, Any]) -> list[str]:
    if floors["cuda"] is None:
        return [f"cuda   absent: {floors['cuda_absent']}"]
    lines = []
    for device in floors["cuda"]:
        lines.append(f"cuda:{device['device']} {device['name']}")
        lines += [f"       {key:<24} {value}" for key, value in device.items() if key not in ("device", "name")]
    return lines
