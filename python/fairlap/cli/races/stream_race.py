"""``fairlap load PROMPTS.jsonl``: servers that stream, from the options of the command to a race."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fairlap.cli.races.planned_race import Planned, PlanOptions, race_planned
from fairlap.errors import InvalidRequest
from fairlap.request.fields.load import E_LOAD

if TYPE_CHECKING:
    from fairlap.request.names import ContestantName
    from fairlap.request.work import Work
    from fairlap.scenarios.streams.asked import StreamsAsked

SUFFIXES = (".jsonl", ".csv")
OF_STREAMS = (
    *("tokens", "rate", "arrivals", "concurrency", "per_token", "shared_prefix"),
    *("overload", "slow_clients", "abort", "clients", "ca", "insecure"),
)
OF_THE_LOAD = (*OF_STREAMS, "think", "users", "first_token", "workers", "trial")
_OF_THE_PLAN = ("blocks", "budget", "seed", "only_winner")
_OF_THE_RACE = ("target", "budget", "baseline", "price", "remote", "wait", "output")
_OF_THE_COMMAND = ("models", "contestants", "as_json", "quiet", "store", "dry_run", "save_plan")
_KNOWN = {*OF_THE_LOAD, *_OF_THE_PLAN, *_OF_THE_RACE, *_OF_THE_COMMAND}
_EXAMPLE = "http://127.0.0.1:8000/v1:model=NAME"


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
    options: PlanOptions,
    *,
    store: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Race what the options ask for, and end the command."""
    given = {name: value for name, value in given.items() if value not in (None, ())}
    for name in context.params:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT and name not in _KNOWN:
            raise InvalidRequest(f"{_option(name)} is not for servers that stream; leave it out", code=E_LOAD)

    def planned(_notify: Callable[[str], None]) -> Planned:
        return _planned(models, given, store=store, quiet=quiet, as_json=as_json)

    race_planned(planned, options, quiet=quiet, as_json=as_json)


def _planned(models: Sequence[str], given: Mapping[str, Any], *, store: bool, quiet: bool, as_json: bool) -> Planned:
    from fairlap.cli.races.run_race import checked_output
    from fairlap.race.planning.plan_reach import allow
    from fairlap.request.race_request import RaceOptions
    from fairlap.scenarios.streams.race.planned_load import plan_of

    contestants = given.get("contestants", ())
    asked = streams_given(models, contestants, given)
    baseline = given.get("baseline", "")
    if baseline and baseline not in [each.text for each in contestants]:
        raise InvalidRequest(f"--baseline {baseline} is not one of the contestants", code="E_BASELINE")
    plan = plan_of(asked, contestants, **{name: given[name] for name in _OF_THE_PLAN if name in given})
    of_race = RaceOptions(**{name: given[name] for name in _OF_THE_RACE if name in given})
    output = checked_output(plan, of_race, store=store, quiet=quiet, as_json=as_json)
    allow(plan)
    return Planned(plan, output)


def streams_given(
    models: Sequence[str], contestants: Sequence[ContestantName], given: Mapping[str, Any], command: str = "load"
) -> StreamsAsked:
    """Check the options of a command that say what servers are asked."""
    from fairlap.scenarios.streams.asked import streams_asked
    from fairlap.scenarios.streams.several_clients.client_names import clients_named
    from fairlap.scenarios.streams.workload.arrivals import arrivals_named
    from fairlap.scenarios.streams.workload.lengths import lengths_named
    from fairlap.scenarios.streams.workload.manners import abort_named, slow_clients_named
    from fairlap.scenarios.streams.workload.overload import overload_named
    from fairlap.scenarios.streams.workload.sessions import shared_prefix_named

    if len(models) > 1:
        raise InvalidRequest(f"give one file of prompts, without other models (got {len(models)})", code=E_LOAD)
    if not contestants:
        raise InvalidRequest(f"give servers: fairlap {command} {models[0]} --on {_EXAMPLE} --tokens 64", code=E_LOAD)
    chosen = {name: given[name] for name in (*OF_THE_LOAD, "remote") if given.get(name) is not None}
    readers = {"tokens": lengths_named, "arrivals": arrivals_named, "shared_prefix": shared_prefix_named}
    readers |= {"overload": overload_named, "slow_clients": slow_clients_named, "abort": abort_named}
    readers |= {"clients": clients_named}
    chosen |= {name: read(chosen[name]) for name, read in readers.items() if name in chosen}
    return streams_asked(Path(models[0]), contestants, **chosen)


def streamed_in_self_test(model: str, contestant: ContestantName, options: dict[str, Any]) -> Work | None:
    """Take what a server is asked out of the options of a self-test; None where its contestant is no such server."""
    given = {name: options.pop(name) for name in OF_THE_LOAD if name in options}
    if not are_prompts((model,)):
        if wrong := next((name for name, value in given.items() if value is not None), ""):
            raise InvalidRequest(f"{_option(wrong)} is for servers that stream; give a file of prompts", code=E_LOAD)
        return None
    from fairlap.scenarios.streams.race.planned_load import work_of

    for name in ("slowdown", "to_score", "batch"):
        if options[name] is not None:
            raise InvalidRequest(f"{_option(name)} is not for servers that stream; leave it out", code=E_LOAD)
    return work_of(streams_given((model,), (contestant,), given, "self-test"))


def _option(name: str) -> str:
    named = {"contestants": "--on", "plan_file": "--plan", "memory_limit_bytes": "--memory-limit"}
    return named.get(name, f"--{name.replace('_', '-')}")
