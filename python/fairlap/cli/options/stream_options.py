"""Options that say what servers of language models are asked."""

from __future__ import annotations

import click

from fairlap.cli.options.option_groups import grouped
from fairlap.cli.options.values import DURATION, LATENCY

TRIAL = click.option("--trial", type=DURATION, help="The longest time of a trial of one rate.  [default: 2s]")
FIRST_TOKEN = click.option(
    "--first-token",
    type=LATENCY,
    help="The first token of as many requests comes within DURATION.",
)
_OF_STREAMS = (
    click.option("--tokens", type=int, help="PROMPTS.jsonl: tokens of each answer."),
    click.option("--rate", type=float, metavar="PER_S", help="PROMPTS.jsonl: requests per second, at random."),
    click.option("--concurrency", type=int, help="PROMPTS.jsonl: users, who ask again when they have their answer."),
    click.option(
        "--per-token", type=LATENCY, help="PROMPTS.jsonl: further tokens come within DURATION each, on average."
    ),
    click.option("--ca", metavar="FILE", help="PROMPTS.jsonl: trust servers with certificates of FILE alone."),
    click.option("--insecure", is_flag=True, default=None, help="PROMPTS.jsonl: verify no certificates."),
)

stream_options = grouped(_OF_STREAMS)
