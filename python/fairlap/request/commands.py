"""Commands that race as contestants: ``--command old='./old --x'``, or the table ``commands`` of a request file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias, get_args

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.request.fields.package_origin import WITH, is_wheel_or_commit
from fairlap.request.names import COMMAND, FOLDER, OUTPUT, REPORTED, RUN, ContestantName
from fairlap.suggestions import not_one_of

CODE = "E_COMMAND"
E_REPORT = "E_REPORT"
ReportFormat = Literal["google-benchmark", "pyperf", "hyperfine", "criterion", "nvbench", "number"]
"""In which a program reports the time of its own work."""

REPORT_FILE = "{report}"
"""In a command line: the file that its program writes its report to."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_GIVEN = re.compile(r"(?P<name>[^=@]*)(@(?P<folder>[^=]*))?=(?P<run>.*)", re.DOTALL)


class Command(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A command line that is split as a shell does, and run without one."""

    run: str
    folder: str = ""  # in which it runs; the current one by default
    package: str = ""  # a wheel, or git+URL@COMMIT: installed where the command then finds python and its programs
    reported: str = ""  # the format of its report and its benchmark in it, where they are not those of the request


Commands: TypeAlias = dict[str, str | Command]


def command_in(text: str) -> tuple[str, Command]:
    """``NAME=COMMAND``, or with a place: ``NAME@FOLDER=COMMAND``, ``NAME@PACKAGE.whl=COMMAND``."""
    found = _GIVEN.fullmatch(text)
    if found is None or (found["folder"] is not None and not found["folder"].strip()):
        raise InvalidRequest(
            f"{text!r} is not of the form NAME=COMMAND or NAME@FOLDER=COMMAND, such as old='./old --size 10'", code=CODE
        )
    place = found["folder"] or ""
    installed = is_wheel_or_commit(place)
    return found["name"].strip(), Command(found["run"], "" if installed else place, place if installed else "")


def commands_in(given: Iterable[tuple[str, Command]]) -> Commands:
    """Each name once."""
    found: Commands = {}
    for name, command in given:
        if name in found:
            raise InvalidRequest(f"command {name} is given twice", code=CODE)
        found[name] = command
    return found


def contestants_of(
    commands: Mapping[str, str | Command], output: str = "", reported: str = ""
) -> tuple[ContestantName, ...]:
    """Turn commands into contestants.

    ``output`` is what each must print, as :func:`fairlap.frameworks.programs.command.fingerprint` gives it. They
    race by what they report if ``reported`` or each of them names how, all in one format.
    """
    found = tuple(_contestant(name, each, output, reported) for name, each in commands.items())
    formats = {name.text: name.framework_options.get(REPORTED, "").partition(":")[0] for name in found}
    if len(set(formats.values())) > 1:
        listed = ", ".join(f"{name} by {format_ or 'wall time'}" for name, format_ in formats.items())
        raise InvalidRequest(f"all commands race by reports of one format (got {listed})", code=E_REPORT)
    return found


def report_in(text: str) -> tuple[ReportFormat, str]:
    """``FORMAT`` or ``FORMAT:NAME``, where the name is that of a benchmark in the report."""
    given, colon, name = text.partition(":")
    known = {str(each): each for each in get_args(ReportFormat)}
    if given not in known:
        raise InvalidRequest(f"format of reports: {not_one_of(given, known)}", code=E_REPORT)
    if colon and not name.strip():
        raise InvalidRequest(f"{text!r} names no benchmark; write {given}:NAME, or {given} alone", code=E_REPORT)
    return known[given], name.strip()


def reports_of(contestants: Iterable[ContestantName]) -> str:
    """Find the format of the reports by which contestants race; empty where they race by wall time."""
    return next((own.partition(":")[0] for each in contestants if (own := dict(each.options).get(REPORTED, ""))), "")


def with_report_file(words: Iterable[str], path: str) -> list[str]:
    return [word.replace(REPORT_FILE, path) for word in words]


def is_named_command(name: ContestantName) -> bool:
    """Rather than ``command:./program``, which says what it runs."""
    return name.framework == COMMAND and RUN in dict(name.options) and not name.text.startswith(f"{COMMAND}:")


def words_of(run: str) -> list[str]:
    """Split the command into the program and its arguments."""
    try:
        words = shlex.split(run)
    except ValueError as error:
        raise InvalidRequest(
            f"the command {run!r} cannot be split into words: {str(error).lower()}", code=CODE
        ) from None
    if not words or not words[0]:
        raise InvalidRequest(f"the command {run!r} names no program", code=CODE)
    if "\0" in run:
        raise InvalidRequest(f"the command {run!r} holds a null character", code=CODE)
    return words


def _contestant(name: str, given: str | Command, output: str, reported: str) -> ContestantName:
    command = Command(given) if isinstance(given, str) else given
    if not _NAME.fullmatch(name):
        raise InvalidRequest(f"{name!r} is not a name of a command; use letters, digits, '_', '-' and '.'", code=CODE)
    words_of(command.run)
    if reported := command.reported or reported:
        report_in(reported)
    options = {RUN: command.run, FOLDER: command.folder, OUTPUT: output, REPORTED: reported, WITH: command.package}
    return ContestantName(name, COMMAND, options=tuple((key, value) for key, value in options.items() if value))
