"""``fairlap stale``: results that were measured before the machine's software changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlap.cli.help import Command
from fairlap.cli.options.output_options import JSON, OUTPUT_JSON
from fairlap.cli.output import print_result
from fairlap.printable import joined_lines

if TYPE_CHECKING:
    from fairlap.history.stale import Staleness


@click.command(
    "stale",
    cls=Command,
    examples="""
fairlap stale
    List what should be measured again.
""",
)
@click.option("--model", default="", help="Only results of this model.")
@OUTPUT_JSON
@JSON
def command(model: str, output: tuple[Path, ...], as_json: bool) -> None:
    """List stored results whose driver, kernel, microcode or framework differs from what is installed now.

    Of each race only the newest run counts. Each result has the command that measures it again. Results of other
    hardware are only counted.

    Exit status: 0 when every result is current, 1 when one is stale, 2 when nothing is stored.
    """
    from fairlap.history.stale import staleness_of
    from fairlap.machine.facts import machine_facts
    from fairlap.store.errors import NoSuchRun
    from fairlap.store.store import open_store

    with open_store(reading=True) as store:
        found = staleness_of(store, machine_facts(), model=model)
        if not (found.stale or found.current or found.elsewhere):
            of_model = f" of {model!r}" if model else ""
            raise NoSuchRun(f"there is no result{of_model} in {store.path}; `fairlap runs` lists what is stored")
    print_result(found, _text(found), as_json=as_json, output=output)
    raise SystemExit(1 if found.stale else 0)


def _text(found: Staleness) -> str:
    from fairlap import quantity_text

    lines = []
    for each in found.stale:
        head = f"{each.began_at[:10] or 'unknown date'}  {', '.join(each.works)}: {', '.join(each.contestants)}"
        lines += [head, f"    {'; '.join(map(str, each.changed))}", f"    {each.renew}"]
    lines.append(f"{len(found.stale)} stale, {found.current} current")
    if found.elsewhere:
        lines[-1] += f", {quantity_text.count(found.elsewhere, 'result')} of other hardware"
    return joined_lines(lines)
