"""The options of `fairlap time` for callables over axes, and the comparison that they ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlap.cli.options.answer_options import with_imported
from fairlap.cli.options.device_options import DeviceTiming
from fairlap.cli.options.option_groups import grouped
from fairlap.cli.options.output_options import output_option, writable
from fairlap.cli.output import print_document, print_note
from fairlap.errors import InvalidRequest
from fairlap.frameworks.programs.imported_callable import imported_callable

if TYPE_CHECKING:
    from fairlap.render.outputs import Format
    from fairlap.scenarios.callables.axes.axis import Axis
    from fairlap.scenarios.callables.axes.result import ComparisonOverAxes

INTERRUPTED, FAILED, WRONG = 130, 2, 1
_FEWEST_CALLABLES = 2
_AMOUNTS = ("bytes_per_call", "flops_per_call")
_NOT_OVER_AXES = ("alone", "only_winner", "regime", "grid", "block", "shared", "arguments")
_OPTIONS: tuple[Callable[..., Any], ...] = (
    click.option(
        "--axis", multiple=True, metavar="NAME=VALUES", help="Compare at each: n=1K..1M:x2 (K is 1024). Repeatable."
    ),
    click.option("--bytes", "bytes_per_call", metavar="MODULE:CALLABLE", help="Bytes that a call moves: nbytes(n)."),
    click.option("--flops", "flops_per_call", metavar="MODULE:CALLABLE", help="Operations of a call: flops(n)."),
)

OUTPUT = output_option("Write FILE.json; with --axis also .html, .md, .csv, .svg, .png.")
axis_options = grouped(_OPTIONS)


@dataclass(frozen=True)
class OverAxes:
    """What is asked, read and checked, with the files to write."""

    axes: tuple[Axis, ...]
    amounts: Mapping[str, str]
    files: Sequence[tuple[Path, Format]]


def axes_asked(names: Sequence[str], options: dict[str, Any], output: Sequence[Path]) -> OverAxes | None:
    """Take the options of axes out of ``options``; None where there is no axis."""
    axis = options.pop("axis", ())
    amounts = {name: options.pop(name) for name in _AMOUNTS if name in options}
    if not axis:
        if without := next((name.removesuffix("_per_call") for name in amounts), ""):
            raise _refused(f"--{without} goes with --axis, such as --axis n=1K..1M:x2")
        return None
    from fairlap.render.encoders import SUFFIXES
    from fairlap.scenarios.callables.axes.axis import axis_in, require_distinct

    if len(names) < _FEWEST_CALLABLES:
        raise _refused("--axis compares several callables; name two or more")
    if misplaced := next((name for name in _NOT_OVER_AXES if name in options), ""):
        option = misplaced.replace("arguments", "args").replace("_", "-")
        raise _refused(f"--{option} does not go with --axis, which compares all importable callables at each point")
    if not options.get("inputs"):
        raise _refused("--axis needs --inputs MODULE:CALLABLE, which draws the arguments of a call")
    axes = require_distinct([axis_in(text) for text in axis])
    return OverAxes(axes, amounts, writable(output, only=SUFFIXES))


def compared_over_axes(
    names: Sequence[str], asked: OverAxes, timing: DeviceTiming | None, options: Mapping[str, Any], *, quiet: bool
) -> ComparisonOverAxes:
    from fairlap.scenarios.callables.axes.over_axes import compare_over

    amounts: dict[str, Any] = {name: imported_callable(target) for name, target in asked.amounts.items()}
    return compare_over(
        {name: imported_callable(name) for name in names},
        axes={axis.name: axis.values for axis in asked.axes},
        on_device=None if timing is None else timing.wanted,
        report=(lambda text: None) if quiet else print_note,
        **amounts,
        **with_imported(dict(options)),
    )


def print_over_axes(result: ComparisonOverAxes, asked: OverAxes, *, raw: bool, as_json: bool) -> int:
    """Print the result, write the files, and return the exit status."""
    from fairlap.scenarios.callables.render.axes_document import document_of

    status = print_document(document_of(result, raw=raw), as_json=as_json, files=asked.files)
    if result.interrupted:
        return INTERRUPTED
    if any(each.failed for each in result.points):
        return FAILED
    return WRONG if result.wrong else status


def _refused(message: str) -> InvalidRequest:
    return InvalidRequest(message, code="E_AXIS")
