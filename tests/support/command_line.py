"""Calling ``fairlap`` as a user does: as a process, or faster within this one."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from fairlap.cli import cli, main
from fairlap.errors import FairlapError

SHORT = ("--blocks", "1", "--seconds", "0.05", "--threads", "1", "--no-store", "--quiet")
"""Of a race that is about something other than its times."""


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


def here(
    *arguments: object, cwd: Path | None = None, output: Path | None = None, **variables: object
) -> subprocess.CompletedProcess[str]:
    """Run `fairlap` in this process, which is quicker, for tests that do not look at the process itself.

    ``output`` is written to instead of kept.
    """
    command = ["fairlap", *map(str, arguments)]
    with (
        tempfile.TemporaryFile("w+") if output is None else output.open("w") as printed,
        tempfile.TemporaryFile("w+") as errors,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr("fairlap.cli.OWN_PROCESS", "")  # what runs beside these tests is not fairlap's
        patch.setattr("fairlap.cli.output._printed_json", False)
        if cwd is not None:
            patch.chdir(cwd)
        for name, value in variables.items():
            patch.setenv(name, str(value))
        for name, value in (("argv", command), ("stdout", printed), ("stderr", errors)):
            patch.setattr(sys, name, value)
        with pytest.raises(SystemExit) as ended:
            main()
        texts = []
        for stream, file in ((sys.stdout, printed), (sys.stderr, errors)):
            stream.flush()
            if file.readable():
                file.seek(0)
            texts.append(file.read() if file.readable() else "")
    return subprocess.CompletedProcess(command, int(ended.value.code or 0), *texts)


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
