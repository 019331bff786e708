"""``fairlap list models|frameworks|devices|prices``."""

from __future__ import annotations

from collections.abc import Sequence

import click

from fairlap.cli.output import print_json

_AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")


@click.group("list")
def command() -> None:
    """What there is to race, where it can run, and what an hour costs."""


@command.command("models")
@_AS_JSON
def models(as_json: bool) -> None:
    """Models, with their size and what they can be raced in."""
    from fairlap.cli.catalogue import models as listed

    found = listed()
    if as_json:
        print_json(found)
        return
    rows = [["model", "parameters", "GMACs", "modes", "precisions", "batch", "task"]]
    for each in found:
        gmacs = "-" if each.gmacs_per_item is None else f"{each.gmacs_per_item:.4g}"
        parameters = "-" if each.parameters is None else f"{each.parameters:,}"
        told = [", ".join(each.modes), ", ".join(each.precisions), str(each.batch), each.task]
        rows.append([each.name, "broken:", each.broken] if each.broken else [each.name, parameters, gmacs, *told])
    _print_table(rows)


@command.command("frameworks")
@_AS_JSON
def frameworks(as_json: bool) -> None:
    """Frameworks, with their variants and the version that is installed here. None is imported."""
    from fairlap.cli.catalogue import frameworks as listed

    found = listed()
    if as_json:
        print_json(found)
        return
    rows = [["framework", "here", "modes", "precisions", "variants"]]
    for each in found:
        here = (each.version or "unknown version") if each.here else "-"
        variants = ", ".join(f"{each.name}:{variant}" if variant else each.name for variant in each.variants)
        told = [here, ", ".join(each.modes), ", ".join(each.precisions), variants]
        rows.append([each.name, "broken:", each.broken] if each.broken else [each.name, *told])
    _print_table(rows)
    click.echo("For one that is not here (-) an environment of its own is made when it races.")


@command.command("devices")
@_AS_JSON
def devices(as_json: bool) -> None:
    """The processor and the CUDA devices, or why there is none."""
    from fairlap.cli.catalogue import devices as listed

    found = listed()
    if as_json:
        print_json(found)
        return
    for each in found:
        cores = "" if each.cores is None else f", {each.cores} cores to run on"
        driver = "" if each.driver_cuda is None else f", the driver speaks CUDA {each.driver_cuda}"
        told = f"absent: {each.absent}" if each.absent else f"{each.what or 'unknown'}{cores}{driver}"
        click.echo(f"{each.name:<7} {told}")


@command.command("prices")
@_AS_JSON
def prices(as_json: bool) -> None:
    """What an hour costs, by the names that --price takes, and where the table lies."""
    from fairlap.results.prices import EXAMPLE, known_prices, prices_file

    found = known_prices()
    if as_json:
        print_json({"file": str(prices_file()), "prices": found})
        return
    if not found:
        click.echo(f"No price is known. Write such entries into {prices_file()}:\n\n{EXAMPLE}", nl=False)
        return
    amounts = [[each.name, f"{each.per_hour:g} {each.currency}/h", each.dated.isoformat()] for each in found]
    _print_table([["name", "price", "dated"], *amounts])
    click.echo(f"in {prices_file()}")


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as they need to be; a short line is a remark and widens nothing."""
    whole = [row for row in rows if len(row) == len(rows[0])]
    widths = [max(len(row[place]) for row in whole) for place in range(len(rows[0]))]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo("  ".join(cells).rstrip())
