"""Help fits: the essentials on one screen, an option on one line, each option in one section, examples that parse."""

from __future__ import annotations

import shlex

import click
import pytest
from command_line import invoke, output
from fairlap.cli import cli
from fairlap.cli.help import RACE_SECTIONS, Command

CONTEXT = click.Context(cli, info_name="fairlap")
COMMANDS = {name: command for name in cli.list_commands(CONTEXT) if (command := cli.get_command(CONTEXT, name))}
LEAVES = [name for name, command in COMMANDS.items() if not isinstance(command, click.Group)]


def options_of(name: str) -> list[click.Option]:
    return [each for each in COMMANDS[name].params if isinstance(each, click.Option)]


def command_lines(text: str) -> list[str]:
    found = [line[line.index("fairlap ") :] for line in text.splitlines() if "  fairlap " in f"  {line}"]
    return [line for line in found if not line.endswith("difference is real.")]


def is_understood(line: str) -> None:
    _, name, *arguments = shlex.split(line)
    COMMANDS[name].make_context(f"fairlap {name}", arguments)


@pytest.mark.parametrize("name", LEAVES)
def test_the_essentials_fit_a_screen_and_hold_an_example(name: str) -> None:
    command = COMMANDS[name]
    assert isinstance(command, Command)
    lines = output(name, "-h").splitlines()
    assert len(lines) <= 40
    assert any(line.startswith(f"  fairlap {name}") for line in lines)


@pytest.mark.parametrize("name", LEAVES)
def test_each_option_is_one_line_of_a_hundred_characters_in_the_whole_help(name: str) -> None:
    lines = output(name, "--help").splitlines()
    for option in options_of(name):
        assert option.help
        shortest = min(option.opts, key=len)
        [line] = [
            each for each in lines if each.startswith((f"  {shortest} ", f"  {shortest}, ")) and option.help in each
        ]
        assert len(line) <= 100


@pytest.mark.parametrize("name", LEAVES)
def test_every_example_of_a_command_is_understood(name: str) -> None:
    command = COMMANDS[name]
    assert isinstance(command, Command)
    examples = command_lines(command.examples)
    assert examples
    for line in examples:
        is_understood(line)


def test_every_section_holds_options_of_some_command_and_no_option_is_in_two() -> None:
    named = [option for names in RACE_SECTIONS.values() for option in names.split()]
    offered = {each.removeprefix("--") for name in LEAVES for option in options_of(name) for each in option.opts}
    assert len(named) == len(set(named))
    assert set(named) - {"h", "help"} <= offered


def test_the_first_screen_answers_what_people_come_for() -> None:
    shown = output()
    lines = command_lines(shown)
    assert len(shown.splitlines()) <= 24
    assert len(lines) >= 5
    for line in lines:
        is_understood(line)


@pytest.mark.parametrize(
    ("typed", "meant"), [("comapre", "compare"), ("laod", "load"), ("pull-requets", "pull-request")]
)
def test_a_mistyped_command_is_answered_with_the_nearest(typed: str, meant: str) -> None:
    refused = invoke(typed)
    assert refused.exit_code == 2
    assert f"`fairlap {meant}`" in refused.stderr
