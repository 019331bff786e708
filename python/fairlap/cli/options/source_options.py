"""Options that bind a user's own model: its shapes, its inputs, and what may be drawn for them."""

from __future__ import annotations

import click

from fairlap.cli.options.option_groups import grouped

_OPTIONS = (
    click.option(
        "--shapes",
        multiple=True,
        metavar="INPUT:8x128,...",
        help="Shapes of the inputs of your own model. Repeatable, to race several.",
    ),
    click.option("--dims", metavar="NAME=N,...", help="Sizes of its named dimensions: batch=8,sequence=128."),
    click.option(
        "--inputs",
        metavar="FILE",
        help="Its inputs: .npz, .npy, folder, FILE.py:FUNCTION.  [default: drawn]",
    ),
    click.option(
        "--range",
        "ranges",
        multiple=True,
        metavar="INPUT:LOW..HIGH",
        help="What is drawn for an input: pixels:0..255.  [default: from its graph]",
    ),
    click.option(
        "--trust", is_flag=True, default=None, help="Allow its file to run code when it is loaded, as a pickle does."
    ),
)


source_options = grouped(_OPTIONS)

GENERATE = click.option(
    "--generate",
    metavar="PROMPT:ANSWER",
    help="Answer token by token (hf:, GGUF): 128:32, or 96+32:32.",
)
