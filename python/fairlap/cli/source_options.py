"""Options that bind a user's own model: its shapes, its inputs, and what may be drawn for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--shapes",
        multiple=True,
        metavar="INPUT:8x128,...",
        help="Shapes of the inputs of your own model; repeat the option to race several.",
    ),
    click.option("--dims", metavar="NAME=N,...", help="Sizes of its named dimensions: batch=8,sequence=128."),
    click.option(
        "--inputs",
        metavar="FILE|FOLDER|FILE.py:FUNCTION",
        help="Its inputs: .npz, .npy, a test_data_set folder, or a function.  [default: drawn]",
    ),
    click.option(
        "--range",
        "ranges",
        multiple=True,
        metavar="INPUT:LOW..HIGH",
        help="What is drawn for an input: ids:0..30521, pixels:0..255.  [default: what its graph shows of integers]",
    ),
    click.option(
        "--trust", is_flag=True, default=None, help="Allow its file to run code when it is loaded, as a pickle does."
    ),
)


def source_options(command: _Command) -> _Command:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
