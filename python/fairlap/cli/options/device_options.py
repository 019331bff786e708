"""The options of `fairlap time` for a GPU, and the timing that they ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from fairlap.cli.options.option_groups import grouped
from fairlap.cli.options.values import DEVICE, Choice
from fairlap.errors import InvalidRequest
from fairlap.frameworks.programs.imported_callable import imported_callable
from fairlap.printable import joined_lines

if TYPE_CHECKING:
    from fairlap.engine.cuda.kernel_file import Launch
    from fairlap.engine.measurement import Measurement, MeasurementDocument
    from fairlap.scenarios.callables.comparison_document import ComparisonDocument
    from fairlap.scenarios.callables.device_timing import Kernels, OnDevice, Timed
    from fairlap.scenarios.callables.result import InProcessComparison

METHODS = ("device_span", "context_span", "kernel_sum", "wall", "host_issue")
_OPTIONS: tuple[Callable[..., Any], ...] = (
    click.option("--device", type=DEVICE, help="Time on this device, such as cuda:0.  [default: the CPU]"),
    click.option(
        "--stream",
        metavar="STREAM",
        help="The work's stream: auto, hidden, watch, ADDRESS, MODULE:NAME.",
    ),
    click.option(
        "--method",
        type=Choice(METHODS),
        metavar="QUANTITY",
        help="device_span, context_span, kernel_sum, wall or host_issue.",
    ),
    click.option("--cache", type=Choice(("warm", "cold")), help="The device's L2 cache before each sample."),
    click.option("--graph", is_flag=True, default=None, help="Capture the call as a CUDA graph and time its replays."),
    click.option(
        "--regime",
        type=Choice(("burst", "sustained")),
        help="Rest before each turn, or load the GPU until its clock is steady.",
    ),
    click.option("--grid", metavar="N[xN[xN]]", help="A kernel file: blocks of the grid.  [default: 1]"),
    click.option("--block", metavar="N[xN[xN]]", help="A kernel file: threads of a block.  [default: 1]"),
    click.option("--shared", type=click.IntRange(min=0), help="A kernel file: bytes of dynamic shared memory."),
    click.option(
        "--args", "arguments", metavar="i32:7,...", help="C: i32:7,f64[1000]->f64. A kernel file: buffer:4MiB,i32:7."
    ),
)
_OF_DEVICE = ("device", "stream", "method", "cache", "graph", "regime")
_OF_FILES = ("grid", "block", "shared", "arguments")


device_options = grouped(_OPTIONS)


@dataclass(frozen=True)
class DeviceTiming:
    """What is timed on a device and how; ``launch`` for kernel files, None for callables."""

    wanted: OnDevice
    launch: Launch | None


def device_timing_of(names: Sequence[str], options: dict[str, Any]) -> DeviceTiming | None:
    """Take the device's options out of ``options``, and return None to time on the CPU."""
    of_device = {name: options.pop(name) for name in _OF_DEVICE if name in options}
    of_files = {name: options.pop(name) for name in _OF_FILES if name in options}
    files = [name for name in names if name.rpartition(":")[0].endswith((".ptx", ".cubin"))]
    if of_files and not files:
        option = next(iter(of_files)).replace("arguments", "args")
        others = " and C functions, such as libm.so.6:sin" if option == "args" else ""
        raise InvalidRequest(f"--{option} applies only to kernel files, such as kernel.ptx:name{others}")
    if files and len(files) < len(names):
        raise InvalidRequest("kernel files and callables work on different streams; time them in separate commands")
    device = str(of_device.pop("device", "cuda" if files else "cpu"))
    if device == "cpu" and (of_device or files):
        option = next(iter(of_device), "")
        raise InvalidRequest(f"--{option} is for a GPU; add --device cuda" if option else "kernel files need a GPU")
    if device == "cpu":
        return None
    from fairlap.engine.cuda.kernel_file import Launch, extent, kernel_arguments
    from fairlap.frameworks.contract import device_number
    from fairlap.scenarios.callables.device_timing import OnDevice

    launch = Launch(
        grid=extent(of_files.get("grid", "1")),
        block=extent(of_files.get("block", "1")),
        shared_bytes=of_files.get("shared", 0),
        arguments=kernel_arguments(of_files.get("arguments", "")),
    )
    return DeviceTiming(OnDevice(device_number(device), **of_device), launch if files else None)


def timed_on_device(
    names: Sequence[str], timing: DeviceTiming, options: Mapping[str, Any]
) -> tuple[Measurement | InProcessComparison, dict[str, Kernels]]:
    """Time the callables, and afterwards record the kernels of one call of each."""
    from fairlap.scenarios.callables.device_timing import callables_on_device, kernel_files

    if timing.launch is None:
        timed = callables_on_device({name: imported_callable(name) for name in names}, timing.wanted)
        return _timed(names, timed, options)
    with kernel_files(names, timing.launch, timing.wanted) as timed:
        return _timed(names, timed, options)


def _timed(
    names: Sequence[str], timed: Timed, options: Mapping[str, Any]
) -> tuple[Measurement | InProcessComparison, dict[str, Kernels]]:
    from fairlap.machine.race_lock.lock import one_race
    from fairlap.scenarios.callables.device_timing import kernels_of, measured_alone
    from fairlap.scenarios.callables.in_process import compare

    result: Measurement | InProcessComparison
    if len(names) > 1:
        with one_race(f"cuda:{timed.number}", wait=options.get("wait", True)):
            asked = {**timed.options, **options, "regime": timed.regime}
            result = compare(timed.callables, done=timed.done or None, **asked)
    else:
        [name] = names
        result = measured_alone(timed, name, **options)
    return result, {} if result.interrupted else {name: kernels_of(timed, name) for name in names}


def document_and_text(
    result: Measurement | InProcessComparison, kernels: Mapping[str, Kernels], *, raw: bool
) -> tuple[MeasurementDocument | ComparisonDocument, str]:
    """Put the result and, on a GPU, the kernels of each callable together."""
    import msgspec

    from fairlap.engine.measurement import Measurement

    if isinstance(result, Measurement):
        measured = result.document(raw=raw)
        for only in kernels.values():
            own = only.document()
            measured = msgspec.structs.replace(measured, kernels=own.kernels, kernels_absent=own.kernels_absent)
        return measured, "\n".join(map(str, (result, *kernels.values())))
    compared = result.document(raw=raw)
    if not kernels:
        return compared, str(result)
    by_callable = {name: each.document() for name, each in kernels.items()}
    lines = [f"  {name}\n{each}" for name, each in kernels.items()]
    return msgspec.structs.replace(compared, kernels_by_callable=by_callable), f"{result}\n{joined_lines(lines)}"
