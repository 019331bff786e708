"""Options of a race at several scales: processes that share each step, and the hosts that they run on."""

from __future__ import annotations

from typing import get_args

import click

from fairlap.cli.options.option_groups import grouped
from fairlap.cli.options.values import NAMES, WHOLE_NUMBERS, Choice
from fairlap.request.fields.scale import Scaling

_OPTIONS = (
    click.option(
        "--processes",
        type=WHOLE_NUMBERS,
        help="Processes (ranks) that share each step; 1,2 races both.  [default: 1]",
    ),
    click.option(
        "--scaling",
        type=Choice(get_args(Scaling)),
        metavar="HOW",
        help="Ranks share a batch (strong, the default) or have their own (weak).",
    ),
    click.option(
        "--hosts",
        type=NAMES,
        metavar="HOST,...",
        help="Spread ranks over these hosts, by ssh.  [default: this machine]",
    ),
)


scale_options = grouped(_OPTIONS)
