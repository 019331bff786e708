"""``fairlap compress``."""

from __future__ import annotations

from pathlib import Path

import click

from fairlap.cli.help import Command
from fairlap.cli.options.output_options import JSON
from fairlap.cli.options.values import FILE
from fairlap.cli.output import print_json, print_line

_PATH = click.Path(path_type=Path)


@click.command(
    "compress",
    cls=Command,
    examples="""
fairlap compress model.onnx --to int8-dynamic,int4,sparse-2:4
    Write three smaller forms.
""",
)
@click.argument("file", type=FILE, metavar="FILE.onnx")
@click.option(
    "--to",
    "forms",
    metavar="FORM,...",
    required=True,
    help="int8-dynamic, int8-static, fp8, int4, sparse-2:4, a share: sparse-90%.",
)
@click.option(
    "--into", "folder", type=_PATH, metavar="FOLDER", help="A new folder for the files.  [default: FILE-compressed]"
)
@click.option("--inputs", type=_PATH, metavar="FILE", help="Inputs from which int8-static and fp8 take ranges.")
@JSON
def command(file: Path, forms: str, folder: Path | None, inputs: Path | None, as_json: bool) -> None:
    """Write smaller forms of an ONNX file: fewer bits or more zeros.

    `fairlap choose` then compares the files by score, time and memory on your data.
    """
    from fairlap import quantity_text
    from fairlap.compression.compress import compressed
    from fairlap.compression.forms import forms_in

    target = folder or Path(f"{file.stem}-compressed")
    found = compressed(file, forms_in(forms), target, inputs)
    if as_json:
        print_json(found)
        return
    print_line(f"{file}: {quantity_text.size(found.source_bytes)}")
    for each in found.forms:
        rest = f", {each.unchanged} left as they were" if each.unchanged else ""
        zeros = f", {quantity_text.share(each.zero_weights)} of the weights in float are 0" if each.zero_weights else ""
        print_line(
            f"{target / each.file}: {quantity_text.size(each.bytes)}, {each.changed} products changed{rest}{zeros}"
        )
