"""The command line. A command's module is imported when the command runs, so that --help stays quick."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from fairlap.cli.output import buffer_output, discard_output, print_error
from fairlap.errors import FairlapError
from fairlap.interrupts import status_of

# Each command, where it lives, and the line that --help shows without importing it.
COMMANDS = {
    "aa": "The referee on trial: how often is it wrong on this machine?",
    "compare": "The same model in several frameworks: who is faster, and is it real.",
    "completion": "What a shell needs to complete commands and options.",
    "diff": "What two saved runs show about each other.",
    "doctor": "Is this machine fit to measure on, and what mends it?",
    "envs": "The environments made for contestants.",
    "explain": "Explain the code of an error or a warning.",
    "export": "A saved run as CSV, JSON, Parquet or Markdown.",
    "floor": "What this machine's clocks and devices cannot see below.",
    "gate": "An exit status for a pull request: slower, or not.",
    "list": "Models, frameworks, devices and prices that there are.",
    "recipe": "A saved run as a recipe: container, versions, plan.",
    "report": "A saved run as one HTML page, or its charts as pictures.",
    "rerun": "The plan of a kept run once more, and what differs from then.",
    "runs": "The runs that were kept.",
    "show": "A kept run: the answer, the machine, settings, warnings.",
    "time": "Time one importable callable, MODULE:CALLABLE.",
    "watch": "Power, clocks, memory, throttling of this machine, live.",
}


class LazyCommands(click.Group):
    """A group that knows its commands by name and imports only the one that runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"fairlap.cli.commands.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _print_version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    import fairlap

    click.echo(f"fairlap {fairlap.__version__}")
    ctx.exit()


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version)
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def cli() -> None:
    """Says which AI framework is faster on this machine, by how much, and whether it is real."""


def _without_debug(arguments: list[str]) -> list[str]:
    """``--debug`` is accepted anywhere before ``--``."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return [argument for argument in arguments[:end] if argument != "--debug"] + arguments[end:]


def main() -> None:
    """Run the command line: every error a user can cause is one or two lines, a code and an exit status."""
    arguments = _without_debug(sys.argv[1:])
    debug = len(arguments) < len(sys.argv) - 1
    as_json = "--json" in arguments
    try:
        if sys.stdout is None:
            raise OSError("standard output is closed")
        buffer_output()
        status = cli.main(arguments, standalone_mode=False)
        sys.stdout.flush()
        sys.exit(status)
    except OSError as error:
        if debug:
            raise
        discard_output()
        reason = error.strerror or str(error)
        where = f"{error.filename}: {reason}" if error.filename else f"{reason}; the output is incomplete"
        print_error(where, "E_FILE", as_json=as_json)
        sys.exit(1)
    except click.ClickException as error:
        message = error.format_message()
        if isinstance(error, click.UsageError) and error.ctx is not None:
            message += f"; see `{error.ctx.command_path} --help`"
        print_error(message, "E_USAGE", as_json=as_json)
        sys.exit(error.exit_code)
    except click.Abort as abort:  # from the interrupt itself
        click.echo("fairlap: interrupted", err=True)
        sys.exit(status_of(abort.__cause__))
    except FairlapError as error:
        if debug:
            raise
        print_error(str(error), error.code, as_json=as_json)
        sys.exit(2)
