"""The command line. A command's module is imported when the command runs, so that --help stays fast."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from typing import NoReturn

import click

from fairlap.cli.help import Group
from fairlap.cli.output import (
    discard_output,
    filter_output,
    print_error,
    print_interruption,
    set_statuses,
    status_of_error,
    status_of_loss,
)
from fairlap.cli.own_process import OWN_PROCESS
from fairlap.errors import FairlapError, InvalidRequest, NotAvailable, NotWritten, shortened
from fairlap.interrupts import STATUSES as STATUSES_OF_SIGNALS
from fairlap.interrupts import status_of, termination_raises
from fairlap.machine.files.open_files import is_for_lack_of_files, why_too_few

_NATIVE = "fairlap.engine._native"

# What --help shows without importing a command.
_MEASURING = {
    "compare": "Compare frameworks on a model.",
    "choose": "Choose between models for one task, by score, time and cost.",
    "load": "Find how many requests frameworks serve under a bound on latency.",
    "time": "Time an importable callable, MODULE:CALLABLE, or compare several.",
    "sweep": "Spread races over the machines of a cluster.",
    "rerun": "Run a saved plan again and show what changed.",
    "convert": "Convert your own model for a framework, and prove the result.",
    "compress": "Write smaller forms of an ONNX file: int8, fp8, int4, sparse.",
    "list": "List models, frameworks, routes, devices and prices.",
    "envs": "List and remove the environments made for contestants.",
    "doctor": "Check whether this machine is fit for measuring.",
    "floor": "Measure timer resolution and overhead.",
    "roofs": "Measure peak arithmetic and bandwidth.",
    "collectives": "Measure all-reduce, all-gather and broadcast beside MPI's.",
    "stability": "Show who keeps digits, at what time, and whose answers repeat bit by bit.",
    "mistakes": "Plant users' mistakes in frameworks, and show how they are reported.",
    "watch": "Show power, clocks, memory and throttling, live.",
    "suite": "Run many benchmarks as one, with one error rate and one exit status.",
    "pull-request": "Race a change against its base, and comment on it.",
    "judge": "Keep, discard or undecided: race one change of code, in a loop.",
    "bisect": "Find the commit or release that made it slower, or larger in memory.",
    "self-test": "Measure the false-positive rate on this machine.",
    "explain": "Explain the code of an error or a warning.",
    "completion": "Print the completion script of a shell.",
    "manual": "Write manual pages for man.",
}
_STORED_RUNS = {
    "show": "Show a stored run: the answer, machine, settings, warnings.",
    "runs": "List, remove, export, import, share and repair stored runs.",
    "serve": "Browse stored runs in a web browser.",
    "history": "Show how a model's times changed over all stored runs.",
    "stale": "List results that a new driver, kernel or framework made stale.",
    "diff": "Compare two runs.",
    "across": "Put runs of different machines and prices side by side.",
    "gate": "Fail when a run shows a slowdown, for pull requests.",
    "report": "Write a run as an HTML page or charts.",
    "export": "Write the rows of a run as CSV, JSON, Parquet or Markdown.",
    "bundle": "Write a run with all its evidence to one file.",
    "board": "Publish a static site of models, frameworks and machines.",
    "verify": "Check a bundle, and compute its figures again.",
    "recipe": "Write a container and commands that repeat a run.",
}

STATUSES = {
    **dict.fromkeys(("gate", "pull-request"), 3),
    **dict.fromkeys(("bisect", "choose", "diff", "doctor", "judge", "self-test", "stale", "suite", "verify"), 2),
}
"""Of errors, and of output that is lost, where 1 means something else than that a result or a file is lost."""

_TIMING_HERE = ("time",)
"""Their calls run in this process and may never return to Python, so that only the system's own handler ends them."""

_FOLDERS = {
    **dict.fromkeys(("bisect", "choose", "judge", "pull-request", "suite"), "decisions"),
    **dict.fromkeys(("doctor", "envs", "floor", "roofs", "watch"), "machine"),
}

_FIRST_SCREEN = """\
fairlap finds out which AI framework is faster on this machine, by how much, and whether the difference is real.

  Frameworks, on a built-in model    fairlap compare convnet --on torch,jax,onnxruntime
  Frameworks, on your own model      fairlap compare model.onnx --on onnxruntime,torch
  Two releases of a framework        fairlap compare mlp --on torch==2.12.0,torch==2.13.0
  Programs, or Python callables      fairlap compare --command old=./old --command new=./new
                                     fairlap time my_package:old my_package:new
  Requests within a time limit       fairlap load convnet --on torch,onnxruntime --p99 50ms

`fairlap -h` lists the commands, and `fairlap COMMAND -h` shows the options that matter most."""


class LazyCommands(Group):
    """Imports only the command that runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_MEASURING, *_STORED_RUNS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        folder = "stored_runs" if cmd_name in _STORED_RUNS else _FOLDERS.get(cmd_name, "")
        room = f"fairlap.cli.commands.{folder}".rstrip(".")
        command: click.Command = import_module(f"{room}.{cmd_name.replace('-', '_')}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in (("Commands", _MEASURING), ("Commands for stored runs", _STORED_RUNS)):
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))


def _print_version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from fairlap.version import __version__

    click.echo(f"fairlap {__version__}")
    ctx.exit()


@click.group(cls=LazyCommands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version)
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Find out which AI framework is faster on this machine, by how much, and whether the difference is real.

    Exit status: 0 on success, 1 when a result or a file is lost, 2 for an invalid request, 130 after Ctrl-C; some
    commands document more. Errors end with a code that `fairlap explain` explains.
    """
    if ctx.invoked_subcommand is None:
        click.echo(_FIRST_SCREEN)


def _without_debug(arguments: list[str]) -> list[str]:
    """``--debug`` is accepted anywhere before ``--``."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return [argument for argument in arguments[:end] if argument != "--debug"] + arguments[end:]


_PLAIN = {
    "integer range": "a whole number",
    "integer": "a whole number",
    "float range": "a number",
    "float": "a number",
}


def _message_of(error: click.ClickException) -> str:
    """Write click's message as fairlap writes its own."""
    if isinstance(error, click.NoSuchOption):
        near = ", ".join(sorted(error.possibilities or ()))
        return f"there is no option {error.option_name}" + (f"; did you mean {near}?" if near else "")
    message = error.format_message().removesuffix(".")
    for type_of_click, plain in _PLAIN.items():
        message = message.replace(f"is not a valid {type_of_click}", f"is not {plain}")
    return message


def _is_help(error: click.ClickException) -> bool:
    """Whether a group of commands was given none, so that its message is its help. Click 8.1 printed that itself."""
    kind = getattr(click.exceptions, "NoArgsIsHelpError", None)
    return kind is not None and isinstance(error, kind)


def _code_of(error: click.ClickException) -> str:
    """Give a value that is not accepted the code that it would have in a request file."""
    if isinstance(error.__cause__, FairlapError):
        return error.__cause__.code
    bad_value = isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter)
    return InvalidRequest.code if bad_value else "E_USAGE"


def _print_refusal(error: click.ClickException, *, as_json: bool) -> None:
    if _is_help(error):
        click.echo(error.format_message(), err=True)
        return
    message = _message_of(error)
    if isinstance(error, click.UsageError) and error.ctx is not None:
        see = f"`{error.ctx.command_path} --help`"
        message += f" See {see}" if message.endswith("?") else f"; see {see}"
    print_error(message, _code_of(error), as_json=as_json)


@contextmanager
def _engine_required() -> Iterator[None]:
    """One line where the native engine is not built, or its file cannot be loaded."""
    try:
        yield
    except ImportError as error:
        if error.name in (_NATIVE, "_native") and error.path is not None:
            raise NotAvailable(f"the native engine cannot be loaded: {error}", code="E_NOT_BUILT") from error
        if error.name not in (_NATIVE, "fairlap.engine") or find_spec(_NATIVE) is not None:
            raise
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        message = f"the native engine is not built for Python {version} here; `make demo` or `pip install .` builds it"
        raise NotAvailable(message, code="E_NOT_BUILT") from error


def _refusal(error: FairlapError | UnicodeEncodeError) -> tuple[str, str]:
    """Names of files may be any bytes, and what is sent to a process or stored is text."""
    if isinstance(error, FairlapError):
        return str(error), error.code
    return f"{shortened(ascii(error.object))} is not valid UTF-8", InvalidRequest.code


def main() -> None:
    """Run the command line: every error a user can cause is one or two lines, a code and an exit status.

    ``--debug`` adds the traceback and changes nothing else. With ``--json``, a signal leaves a document too.
    """
    arguments = _without_debug(sys.argv[1:])
    debug = len(arguments) < len(sys.argv) - 1
    as_json = "--json" in arguments
    ends_at_once = not as_json or arguments[0] in _TIMING_HERE
    try:
        with nullcontext() if ends_at_once else termination_raises():
            _run(arguments, debug=debug, as_json=as_json)
    except SystemExit as end:
        if as_json and end.code in STATUSES_OF_SIGNALS:
            print_interruption()
        raise


def _run(arguments: list[str], *, debug: bool, as_json: bool) -> NoReturn:
    status = STATUSES.get(next(iter(arguments), ""))
    set_statuses() if status is None else set_statuses(error=status, loss=status)
    try:
        if sys.stdout is None:
            raise OSError("standard output is closed")
        filter_output()
        with _engine_required():
            status = cli.main(arguments, standalone_mode=False, obj=OWN_PROCESS)
        sys.stdout.flush()
        sys.exit(status)
    except OSError as error:
        if debug:
            traceback.print_exc()
        if is_for_lack_of_files(error):
            print_error(why_too_few(), NotAvailable.code, as_json=as_json)
            sys.exit(status_of_error())
        discard_output()
        reason = error.strerror or str(error)
        where = f"{error.filename}: {reason}" if error.filename else f"{reason}; the output is incomplete"
        print_error(where, "E_FILE", as_json=as_json)
        sys.exit(status_of_loss())
    except click.ClickException as error:
        _print_refusal(error, as_json=as_json)
        sys.exit(error.exit_code)
    except click.Abort as abort:  # from the interrupt itself
        click.echo("fairlap: interrupted", err=True)
        sys.exit(status_of(abort.__cause__))
    except (FairlapError, UnicodeEncodeError) as error:
        if debug:
            traceback.print_exc()
        print_error(*_refusal(error), as_json=as_json)
        sys.exit(status_of_loss() if isinstance(error, NotWritten) else status_of_error())
