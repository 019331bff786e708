"""Commands that race as contestants: ``--command old='./old --x'``, or the table ``commands`` of a request file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.request.names import COMMAND, FOLDER, OUTPUT, RUN, ContestantName

CODE = "E_COMMAND"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_GIVEN = re.compile(r"(?P<name>[^=@]*)(@(?P<folder>[^=]*))?=(?P<run>.*)", re.DOTALL)


class Command(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A command line that is split as a shell does, and run without one."""

    run: str
    folder: str = ""  # in which it runs; the current one by default


Commands: TypeAlias = dict[str, str | Command]


def command_in(text: str) -> tuple[str, Command]:
    """``NAME=COMMAND``, or ``NAME@FOLDER=COMMAND``."""
    found = _GIVEN.fullmatch(text)
    if found is None or (found["folder"] is not None and not found["folder"].strip()):
        raise InvalidRequest(
            f"{text!r} is not of the form NAME=COMMAND or NAME@FOLDER=COMMAND, such as old='./old --size 10'", code=CODE
        )
    return found["name"].strip(), Command(found["run"], found["folder"] or "")


def commands_in(given: Iterable[tuple[str, Command]]) -> Commands:
    """Each name once."""
    found: Commands = {}
    for name, command in given:
        if name in found:
            raise InvalidRequest(f"command {name} is given twice", code=CODE)
        found[name] = command
    return found


def contestants_of(commands: Mapping[str, str | Command], output: str = "") -> tuple[ContestantName, ...]:
    """``output`` is what each must print, as :func:`fairlap.frameworks.command.fingerprint` gives it."""
    return tuple(_contestant(name, each, output) for name, each in commands.items())


def is_named_command(name: ContestantName) -> bool:
    """Rather than ``command:./program``, which says what it runs."""
    return name.framework == COMMAND and RUN in dict(name.options) and not name.text.startswith(f"{COMMAND}:")


def words_of(run: str) -> list[str]:
    """The program and its arguments."""
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


def _contestant(name: str, given: str | Command, output: str) -> ContestantName:
    command = Command(given) if isinstance(given, str) else given
    if not _NAME.fullmatch(name):
        raise InvalidRequest(f"{name!r} is not a name of a command; use letters, digits, '_', '-' and '.'", code=CODE)
    words_of(command.run)
    options = {RUN: command.run, FOLDER: command.folder, OUTPUT: output}
    return ContestantName(name, COMMAND, options=tuple((key, value) for key, value in options.items() if value))
