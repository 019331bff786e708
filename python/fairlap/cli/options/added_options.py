"""Options of scenarios that installed packages add."""

from __future__ import annotations

from importlib.metadata import entry_points

import click

from fairlap.errors import InvalidRequest
from fairlap.plugins import SCENARIOS


class AddedOption(click.Option):
    """Its text becomes part of the parameter ``scenario_settings``."""

    def __init__(self, name: str, meaning: str, metavar: str) -> None:
        super().__init__([f"--{name}"], metavar=metavar, help=meaning, expose_value=False, callback=_set)


def added_options(command: click.Command) -> click.Command:
    if not entry_points(group=SCENARIOS):  # what settings are takes long to import
        return command
    from fairlap.scenarios.contract import settings_of_scenarios

    taken = {name for each in command.params for name in each.opts}
    for each in settings_of_scenarios():
        if f"--{each.name}" in taken:
            raise InvalidRequest(f"a scenario of an installed package adds --{each.name}, which {command.name} has")
        taken.add(f"--{each.name}")
        command.params.append(AddedOption(each.name, each.meaning, each.metavar))
    return command


def _set(ctx: click.Context, option: click.Parameter, text: str | None) -> None:
    if text is not None:
        settings: dict[str, str] = ctx.params.setdefault("scenario_settings", {})
        settings[option.opts[0].removeprefix("--")] = text
