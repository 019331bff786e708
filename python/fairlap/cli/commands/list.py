"""``fairlap list models|operations|data|frameworks|routes|devices|suites|prices``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from fairlap import quantity_text
from fairlap.cli.help import Group
from fairlap.cli.options.source_options import GENERATE, source_options
from fairlap.cli.output import print_json, print_line, print_note

if TYPE_CHECKING:
    from fairlap.models.spec import Tensor

_AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("list", cls=Group)
def command() -> None:
    """List models, operations, data sets, frameworks, routes, devices, suites and prices."""


@command.command("models")
@_AS_JSON
def models(as_json: bool) -> None:
    """List models with their sizes, modes and precisions."""
    from fairlap.cli.catalogue import ModelList
    from fairlap.cli.catalogue import models as listed

    found = listed()
    if as_json:
        print_json(ModelList(found))
        return
    rows = [["model", "parameters", "GMACs", "modes", "precisions", "batch", "data", "task"]]
    for each in found:
        gmacs = "-" if each.gmacs_per_item is None else f"{each.gmacs_per_item:.4g}"
        parameters = "-" if each.parameters is None else f"{each.parameters:,}"
        cells = [", ".join(each.modes), _precisions(each.precisions), str(each.batch), each.data_set or "-", each.task]
        rows.append([each.name, "broken:", each.broken] if each.broken else [each.name, parameters, gmacs, *cells])
    _print_table(rows)


@command.command("operations")
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@_AS_JSON
def operations(patterns: tuple[str, ...], as_json: bool) -> None:
    """List the operations of published lists, such as 'conv-*' or 'deepbench-device/*', with their sizes.

    Operations (a multiplication and an addition each) and bytes (each array once) are those of one call in fp32.
    """
    from fairlap.cli.catalogue import OperationList
    from fairlap.cli.catalogue import operations as listed

    found = listed(patterns)
    if as_json:
        print_json(OperationList(found))
        return
    rows = [["operation", "operations", "bytes", "per byte", "to race", "lists"]]
    for each in found:
        sizes = [quantity_text.size(each.bytes), f"{each.operations_per_byte:.3g}"]
        cells = [f"{each.operations:,}", *sizes, quantity_text.size(each.bytes_to_race), ", ".join(each.lists) or "-"]
        rows.append([each.name, *cells])
    _print_table(rows)
    click.echo("'to race' is about the memory that a race needs.")


@command.command("data")
@_AS_JSON
def data(as_json: bool) -> None:
    """List the labelled data sets that models can be trained on, with their licences."""
    from fairlap.cli.catalogue import DataList, data_sets

    found = data_sets()
    if as_json:
        print_json(DataList(found))
        return
    rows = [["data", "items", "held out", "an item", "labels", "licence", "origin"]]
    for each in found:
        labels = f"{len(each.classes)} classes" if each.classes else "a value"
        shape = "x".join(map(str, each.item))
        counts = [f"{each.items or 0:,}", f"{each.held_out or 0:,}"]
        cells = [*counts, shape, labels, each.licence, each.origin]
        rows.append([each.name, "absent:", each.absent] if each.absent else [each.name, *cells])
    _print_table(rows)


@command.command("frameworks")
@_AS_JSON
def frameworks(as_json: bool) -> None:
    """List frameworks with their variants and installed versions, without importing them."""
    from fairlap.cli.catalogue import FrameworkList
    from fairlap.cli.catalogue import frameworks as listed

    found = listed()
    if as_json:
        print_json(FrameworkList(found))
        return
    rows = [["framework", "here", "modes", "precisions", "variants"]]
    for each in found:
        here = (each.version or "unknown version") if each.here else "-"
        variants = ", ".join(f"{each.name}:{variant}" if variant else each.name for variant in each.variants)
        cells = [here, ", ".join(each.modes), _precisions(each.precisions), variants]
        rows.append([each.name, "broken:", each.broken] if each.broken else [each.name, *cells])
    _print_table(rows)
    click.echo("FRAMEWORK:best races a framework at settings that a search before the race has found.")
    click.echo("A framework that is not installed (-) gets a separate environment when it is raced.")


@command.command("routes")
@click.argument("source", metavar="FILE")
@click.option("--batch", type=int, help="The batch of every input that leaves it open.")
@source_options
@GENERATE
@_AS_JSON
def routes(source: str, as_json: bool, **given: Any) -> None:
    """List the frameworks that can run your own model, how it gets there, and why it does not."""
    from fairlap.cli.catalogue import routes as listed

    given = {name: value for name, value in given.items() if value not in (None, ())}
    found = listed(source, given, print_note)
    if as_json:
        print_json(found)
        return
    rows = [["framework", "here", "precisions", "route"]]
    without: dict[str, list[str]] = {}  # by why there is none
    for each in found.routes:
        if each.route:
            rows.append([each.framework, "yes" if each.here else "-", _precisions(each.precisions) or "-", each.route])
        else:
            why = each.why_not.replace(each.framework.partition(":")[0], "it")
            without.setdefault(why, []).append(each.framework)
    _print_table(rows)
    for why, names in without.items():
        print_line(f"no route to {', '.join(names)}: {why}")
    inputs = ", ".join(map(_input, found.inputs))
    print_line(f"inputs: {inputs}")
    if not any(found.reference in notice.text for notice in found.notices):  # which has the same text, and why
        print_line(f"float64 reference: {found.reference}")
    for notice in dict.fromkeys(found.notices):
        print_line(f"! {notice.text} [{notice.code}]")


def _input(tensor: Tensor) -> str:
    from fairlap.models.spec import Integers, Uniform

    drawn = ""
    if isinstance(tensor.fill, Integers) and tensor.dtype != "bool":
        drawn = f" from {tensor.fill.low} to {tensor.fill.high - 1}"
    elif isinstance(tensor.fill, Uniform):
        drawn = f" from {tensor.fill.low:g} to {tensor.fill.high:g}"
    return f"{tensor.name} {tensor.dtype} [{', '.join(map(str, tensor.shape))}]{drawn}"


@command.command("devices")
@_AS_JSON
def devices(as_json: bool) -> None:
    """List the processor and the CUDA devices, or why there are none."""
    from fairlap.cli.catalogue import DeviceList
    from fairlap.cli.catalogue import devices as listed

    found = listed()
    if as_json:
        print_json(DeviceList(found))
        return
    for each in found:
        cores = "" if each.cores is None else f", {quantity_text.count(each.cores, 'core')} available"
        driver = "" if each.driver_cuda is None else f", driver for CUDA {each.driver_cuda}"
        cells = f"absent: {each.absent}" if each.absent else f"{each.what or 'unknown'}{cores}{driver}"
        print_line(f"{each.name:<7} {cells}")


@command.command("suites")
@_AS_JSON
def suites(as_json: bool) -> None:
    """List the suites that come with fairlap, for `fairlap suite run NAME`."""
    from fairlap.cli.catalogue import SuiteNames
    from fairlap.cli.catalogue import suites as listed

    found = listed()
    if as_json:
        print_json(SuiteNames(found))
        return
    _print_table([["suite", "races", "tags"], *([each.name, str(each.races), ",".join(each.tags)] for each in found)])


@command.command("prices")
@_AS_JSON
def prices(as_json: bool) -> None:
    """List the prices that --price knows by name."""
    from fairlap.cli.catalogue import PriceList
    from fairlap.results.prices import EXAMPLE, known_prices, prices_file

    found = known_prices()
    if as_json:
        print_json(PriceList(str(prices_file()), found))
        return
    if not found:
        click.echo(f"No prices yet. Write entries such as this into {prices_file()}:\n\n{EXAMPLE}", nl=False)
        return
    amounts = [[each.name, f"{each.per_hour:g} {each.currency}/h", each.dated.isoformat()] for each in found]
    _print_table([["name", "price", "dated"], *amounts])
    print_line(f"in {prices_file()}")


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    """Rows with fewer cells than the first are remarks and do not widen columns."""
    whole = [row for row in rows if len(row) == len(rows[0])]
    widths = [max(len(row[place]) for row in whole) for place in range(len(rows[0]))]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        print_line("  ".join(cells).rstrip())


def _precisions(listed: Sequence[Any]) -> str:
    """Say which of them a CPU lacks, where it is refused."""
    from fairlap.request.work import why_not_on

    return ", ".join(f"{each} (GPU)" if why_not_on(each, "cpu") else each for each in listed)
