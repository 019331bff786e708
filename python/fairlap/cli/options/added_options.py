"""Options that are settings of scenarios: of built-in ones, and of those that installed packages add."""

from __future__ import annotations

from importlib.metadata import entry_points

import click

from fairlap.errors import InvalidRequest
from fairlap.plugins import SCENARIOS
from fairlap.scenarios.setting import built_in_settings


class AddedOption(click.Option):
    """Its text becomes part of the parameter ``scenario_settings``."""

    def __init__(self, name: str, meaning: str, metavar: str) -> None:
        super().__init__([f"--{name}"], metavar=metavar, help=meaning, expose_value=False, callback=_set)


def added_options(command: click.Command) -> click.Command:
    settings = built_in_settings()
    if entry_points(group=SCENARIOS):  # what settings are takes long to import
        from fairlap.scenarios.contract import settings_of_scenarios

        settings = settings_of_scenarios()
    there = {name for each in command.params if isinstance(each, AddedOption) for name in each.opts}
    taken = {name for each in command.params for name in each.opts} - there
    for each in settings:
        if f"--{each.name}" in taken:
            raise InvalidRequest(f"a scenario of an installed package adds --{each.name}, which {command.name} has")
        taken.add(f"--{each.name}")
        if f"--{each.name}" not in there:
            command.params.append(AddedOption(each.name, each.meaning, each.metavar))
    return command


def _set(ctx: click.Context, option: click.Parameter, text: str | None) -> None:
    if text is not None:
        settings: dict[str, str] = ctx.params.setdefault("scenario_settings", {})
        settings[option.opts[0].removeprefix("--")] = text
