"""Options of commands that race two versions of one callable or program, and the benchmark that they ask for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlap.cli.options.values import NAME

if TYPE_CHECKING:
    from fairlap.judgement.judge_request import Benchmark

INPUTS = click.option(
    "--inputs", default="", metavar="MODULE:CALLABLE", help="Check answers to the arguments that this draws."
)
REPORTED = click.option(
    "--reported", default="", metavar="FORMAT[:NAME]", help="Race by the time that the command reports."
)

SUITE = click.Path(path_type=Path)
ONLY = click.option(
    "--only", multiple=True, type=NAME, metavar="NAME|REGEX", help="Only these benchmarks of the suite. Repeatable."
)


def benchmark_of(options: dict[str, Any]) -> Benchmark:
    """Take the options of the benchmark out of those that were given."""
    from fairlap.judgement.judge_request import Benchmark

    return Benchmark(
        call=options.pop("call"),
        command=options.pop("run"),
        inputs=options.pop("inputs"),
        reference=options.pop("reference"),
        reported=options.pop("reported"),
        same_output=options.pop("same_output"),
    )
