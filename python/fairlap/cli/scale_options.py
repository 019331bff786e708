"""Options of a race at several scales: processes that share each step, and the hosts that they run on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, get_args

import click

from fairlap.cli.values import NAMES, WHOLE_NUMBERS
from fairlap.request.scale import Scaling

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--processes",
        type=WHOLE_NUMBERS,
        help="Processes that share each step: the ranks of a contestant; 1,2 races both.  [default: 1]",
    ),
    click.option(
        "--scaling",
        type=click.Choice(get_args(Scaling)),
        help="With --processes: the ranks share one batch (strong), or each has one (weak).  [default: strong]",
    ),
    click.option(
        "--hosts",
        type=NAMES,
        metavar="HOST,...",
        help="With --processes: spread ranks over these hosts, reached with ssh.  [default: this machine]",
    ),
)


def scale_options(command: _Command) -> _Command:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
