"""Calling ``fairlap`` as a user does: as a process, or faster within this one."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner, Result
from fairlap.cli import cli
from fairlap.errors import FairlapError


def fairlap(
    *arguments: object,
    cwd: Path | None = None,
    before: str = "",
    after: str = "",
    timeout_s: float = 120,
    **variables: object,
) -> subprocess.CompletedProcess[str]:
    """Run fairlap in a shell.

    ``before`` and ``after`` are shell text around the command, such as ``> /dev/full``; ``variables`` go into the
    environment.
    """
    command = ["sh", "-c", f'{before} "$@" {after}', "sh", sys.executable, "-m", "fairlap", *map(str, arguments)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={**os.environ, **{name: str(value) for name, value in variables.items()}},
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the shell and the command, which else would go on
        process.communicate()
        raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def output(*arguments: object) -> str:
    """Return what a command that succeeds prints to standard output."""
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def refusal(*arguments: object) -> FairlapError:
    """Return the error of a command, of one or two lines."""
    error = invoke(*arguments).exception
    assert isinstance(error, FairlapError), error
    assert len(str(error).splitlines()) <= 2
    return error


def error_code(done: subprocess.CompletedProcess[str]) -> str:
    """Of the one error that a process printed in at most two lines."""
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2
    [code] = re.findall(r"^fairlap: .* \[(E_\w+)\]$", done.stderr, re.MULTILINE)
    return str(code)
