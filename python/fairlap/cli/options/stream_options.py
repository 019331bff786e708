"""Options that say what servers of language models are asked."""

from __future__ import annotations

import click

from fairlap.cli.options.option_groups import grouped
from fairlap.cli.options.values import DURATION, LATENCY

TRIAL = click.option("--trial", type=DURATION, help="The longest time of a trial of one rate.  [default: 2s]")
USERS = click.option(
    "--users",
    type=click.IntRange(min=1),
    help="Find how many instances serve so many users, and their --price.",
)
FIRST_TOKEN = click.option(
    "--first-token",
    type=LATENCY,
    help="The first token of as many requests comes within DURATION.",
)
_OF_STREAMS = (
    click.option("--tokens", metavar="N|A-B", help="PROMPTS.jsonl: tokens of each answer, or lognormal:mean=200:cv=1."),
    click.option("--rate", type=float, metavar="PER_S", help="PROMPTS.jsonl: requests per second, at random."),
    click.option("--arrivals", metavar="KIND", help="With --rate: poisson, constant, gamma:cv=2 (bursts), trace."),
    click.option("--concurrency", type=int, help="PROMPTS.jsonl: users, who ask again when they have their answer."),
    click.option("--think", type=DURATION, help="Users think for DURATION on average before they ask."),
    click.option(
        "--per-token", type=LATENCY, help="PROMPTS.jsonl: further tokens come within DURATION each, on average."
    ),
    click.option(
        "--shared-prefix", metavar="SHARE", help="Let SHARE of each prompt be a common beginning.  [default: 0%]"
    ),
    click.option(
        "--overload", metavar="PER_S:DURATION", help="Raise the --rate for so long: 40:10s. Shows the recovery."
    ),
    click.option(
        "--slow-clients", metavar="SHARE", help="Let SHARE of clients read slowly: 10%, or 10%:500 bytes per second."
    ),
    click.option("--abort", metavar="SHARE", help="Let SHARE of clients hang up before their answer has ended: 5%."),
    click.option(
        "--clients",
        metavar="N|CLUSTER",
        help="Share the load among N processes, or machines of a Ray cluster: auto.",
    ),
    click.option("--ca", metavar="FILE", help="PROMPTS.jsonl: trust servers with certificates of FILE alone."),
    click.option("--insecure", is_flag=True, default=None, help="PROMPTS.jsonl: verify no certificates."),
)

stream_options = grouped(_OF_STREAMS)
