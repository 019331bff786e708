"""``fairlap load PROMPTS.jsonl``: servers that stream, from the options of the command to what is printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from fairlap.cli.options.output_options import writable
from fairlap.cli.output import print_result, progress_notes
from fairlap.errors import InvalidRequest
from fairlap.request.fields.load import E_LOAD

SUFFIXES = (".jsonl", ".csv")
OF_STREAMS = ("tokens", "rate", "arrivals", "concurrency", "think", "per_token", "shared_prefix", "ca", "insecure")
_SHARED = (
    *("contestants", "first_token", "workers", "trial", "blocks", "budget", "seed", "baseline", "only_winner"),
    *("remote", "wait"),
)
_OF_OUTPUT = ("models", "output", "as_json", "quiet")
_INTERRUPTED, _NONE_RANKED = 130, 1


def are_prompts(models: Sequence[str]) -> bool:
    return any(each.lower().endswith(SUFFIXES) for each in models)


def refuse_options_of_streams(given: dict[str, Any]) -> None:
    """Take them out of the options of a load on models, which has none of them."""
    for name in OF_STREAMS:
        if given.pop(name) not in (None, False):
            raise InvalidRequest(
                f"{_option(name)} is for servers that stream: fairlap load prompts.jsonl --on {_EXAMPLE}", code=E_LOAD
            )


def race_streams(
    models: Sequence[str],
    given: Mapping[str, Any],
    context: click.Context,
    *,
    quiet: bool,
    as_json: bool,
    output: Sequence[Path],
) -> None:
    """Race what the options ask for, and end the command."""
    from fairlap.scenarios.streams.asked import streams_asked
    from fairlap.scenarios.streams.document import document_of
    from fairlap.scenarios.streams.race import StreamRace
    from fairlap.scenarios.streams.workload.arrivals import arrivals_named
    from fairlap.scenarios.streams.workload.lengths import lengths_named
    from fairlap.scenarios.streams.workload.sessions import shared_prefix_named

    if len(models) > 1:
        raise InvalidRequest(f"give one file of prompts, without other models (got {len(models)})", code=E_LOAD)
    for name, value in context.params.items():
        is_default = context.get_parameter_source(name) is ParameterSource.DEFAULT
        known = name in (*OF_STREAMS, *_SHARED, *_OF_OUTPUT) or (name == "store" and not value)
        if not is_default and not known:
            raise InvalidRequest(f"{_option(name)} is not for servers that stream; leave it out", code=E_LOAD)
    chosen = {name: given[name] for name in (*OF_STREAMS, *_SHARED) if given.get(name) is not None}
    contestants = chosen.pop("contestants", None)
    if contestants is None:
        raise InvalidRequest(f"give servers: fairlap load {models[0]} --on {_EXAMPLE} --tokens 64", code=E_LOAD)
    readers = {"tokens": lengths_named, "arrivals": arrivals_named, "shared_prefix": shared_prefix_named}
    chosen |= {name: read(chosen[name]) for name, read in readers.items() if name in chosen}
    writable(output, only=(".json",))
    asked = streams_asked(Path(models[0]), contestants, **chosen)
    with progress_notes(quiet=quiet) as notes:
        found = StreamRace(asked, notes.announce).run()
    print_result(document_of(found), found.text, as_json=as_json, output=output)
    ranked = any(row.why_not is None for row in found.rows)
    raise SystemExit(_INTERRUPTED if found.interrupted else 0 if ranked else _NONE_RANKED)


_EXAMPLE = "http://127.0.0.1:8000/v1:model=NAME"


def _option(name: str) -> str:
    named = {"contestants": "--on", "plan_file": "--plan", "memory_limit_bytes": "--memory-limit"}
    return named.get(name, f"--{name.replace('_', '-')}")
