"""``fairlap convert``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fairlap.cli.help import Command
from fairlap.cli.options.source_options import GENERATE, source_options
from fairlap.cli.output import print_json, print_line, print_note


@click.command(
    "convert",
    cls=Command,
    examples="""
fairlap convert model.onnx --for torch --batch 8
    Convert a model, and prove that it gives the same answers.
""",
)
@click.argument("source", metavar="FILE")
@click.option("--for", "framework", metavar="FRAMEWORK", required=True, help="The framework that is to run it.")
@click.option(
    "--into",
    "folder",
    type=click.Path(path_type=Path),
    help="A new folder for the file and its proof.  [default: FILE-for-FRAMEWORK]",
)
@click.option("--batch", type=click.IntRange(min=1), help="The batch of every input that leaves it open.")
@source_options
@GENERATE
@click.option("--json", "as_json", is_flag=True, help="Print the proof as JSON.")
def command(source: str, framework: str, folder: Path | None, as_json: bool, **given: Any) -> None:
    """Convert your own model for a framework, and prove that it gives the same answers.

    The converted file is written with proof.json: the route, the error against the reference and the hash of the file.
    Some frameworks get the model as a function of weights and inputs; then the proof is printed and nothing is written.

    Exit status: 0 when the answers are right, 2 when there is no route, the conversion fails or the answers are wrong.
    """
    from fairlap.cli.races.conversion import converted
    from fairlap.quantity_text import relative_error

    given = {name: value for name, value in given.items() if value not in (None, ())}
    target = folder or Path(f"{Path(source.rpartition(':')[2] or source).stem or 'model'}-for-{framework}")
    proof = converted(source, framework, target, given, print_note)
    if as_json:
        print_json(proof)
        return
    error = "" if proof.error_relative is None else f", relative error {relative_error(proof.error_relative)}"
    result = ", ".join(proof.files) if proof.files else "a function of weights and inputs; no file is written"
    print_line(f"{framework}: {proof.route}{error}: {f'{target}: ' if proof.files else ''}{result}")
    for notice in proof.notices:
        print_line(f"! {notice.text} [{notice.code}]")
