"""A command line as a contestant: each call starts the program, and ends when the program has.

Its output goes to nowhere, or to a file in memory where it must be that of the other commands or holds its report. That
of the first call, which is not timed, is looked at for a report of times.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, ClassVar

from fairlap.engine.measurement import Notice
from fairlap.errors import InvalidRequest, shortened
from fairlap.frameworks.adapter_parts.answers import Answers, named_outputs
from fairlap.frameworks.adapter_parts.use_of_runs import UseOfRuns
from fairlap.frameworks.contract import (
    NO_WEIGHTS,
    Contestant,
    Framework,
    Phase,
    Settings,
    Unsupported,
    refuse_what_is_unknown,
)
from fairlap.frameworks.contract_parts.called_programs import ContestantFailed
from fairlap.frameworks.programs.halved_run import Used, run_halved, times_itself
from fairlap.frameworks.programs.own_report import OwnReport
from fairlap.frameworks.programs.self_timed import MOST_BYTES, NOTICE_OF_A_RUN, FirstOutput, notices_about
from fairlap.machine.files.scratch_folder import ScratchFolder
from fairlap.machine.programs.containers import client_in, labelled, remove_containers, runs_in_container
from fairlap.machine.programs.guardian import CLIENT, TOKEN
from fairlap.machine.programs.passed_environment import own_environment
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload
from fairlap.request.commands import CODE as E_COMMAND
from fairlap.request.commands import with_report_file, words_of
from fairlap.request.names import COMMAND, FOLDER, OUTPUT, REPORTED, RUN, ContestantName

_ONLY_MODEL = "callable"
PROGRAM = "program"  # in force: the file that is run
LONGEST_RUN_S = 300.0  # of the one run whose output is what all must print
_MOST_PROGRAM_BYTES = 256 * 2**20  # of a program whose hash names it
_LAUNCHER = re.compile(
    r"(python|pypy|perl|ruby|node|deno|bun|lua|luajit|php|Rscript|julia|java|dotnet|(ba|da|z|k|fi)?sh|busybox|env|nice|"
    r"taskset|numactl|chrt|timeout|time|stdbuf|setarch|xargs|uv|uvx|poetry|pipx|conda|docker|podman)[\d.]*t?"
)
"""Programs that run another one, or a script, by the names of their files."""
_NO_IMAGE = re.compile(r"Unable to find image ('[^']+') locally")  # the reason follows, which may not name it
_LAST_BYTES = 4096  # of what a failed command printed


class CommandFailed(ContestantFailed):
    """A command cannot be started, or it did not exit with status 0."""

    code = reported = "E_COMMAND"


class OtherOutput(ContestantFailed):
    """A command printed something else than the others."""

    code = reported = "E_OUTPUT"


class CommandLine(Framework):
    name = COMMAND
    packages = ()
    module = "subprocess"
    options: ClassVar = {RUN: (), FOLDER: (), OUTPUT: (), REPORTED: ()}

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        if work.spec.name != _ONLY_MODEL:
            raise Unsupported(f"commands run programs, not models; use the model {_ONLY_MODEL!r}")
        if RUN not in wanted.options:
            raise Unsupported("name the program to run, such as command:./program --option")
        with phase("build"):
            words = words_of(wanted.options[RUN])
            folder, output = wanted.options.get(FOLDER, ""), wanted.options.get(OUTPUT, "")
            program = program_of(words, folder)
            self._version = version_of(words, folder)
            report = OwnReport(words, wanted.options[REPORTED]) if REPORTED in wanted.options else None
            keeps_output = bool(output) or (report is not None and report.is_printed)
            words = words if report is None else report.words
            run = CommandRun(words, folder, keeps_output=keeps_output, looks_at_first=report is None)
        size = int(output.partition("-")[0]) if output else None

        use = run.use = None if runs_in_container(words) else _use_of(run, report)

        def bind(inputs: Arrays) -> Callable[[], Any]:
            ticket = inputs["ticket"]

            def call() -> Any:
                run()
                if size is not None and (printed := run.output_bytes()) != size:
                    raise OtherOutput(f"it printed {printed} bytes, not {size}, the output that all must have")
                if report is not None:
                    report.keep(run.output, run.errors)
                return ticket

            return call

        def outputs(ticket: Any) -> Answers:
            if report is not None:
                report.newest_ns(1)  # so that one that cannot be read is found before anything is timed
            if output and (printed := fingerprint(run.output())) != output:
                raise OtherOutput(
                    f"its output is not the one that all must have: {_named(printed)}, not {_named(output)}"
                )
            return named_outputs(work.spec, [ticket])

        return Contestant(
            bind=bind,
            done=None,
            outputs=outputs,
            weights=dict,
            in_force={
                "threads": "the command's own",
                "precision": NO_WEIGHTS,
                PROGRAM: str(program),
                **({} if report is None else {REPORTED: wanted.options[REPORTED]}),
            },
            work_in="other_server" if use is None else "child",
            own_times=report,
            cpu_times=use,
            peak_of_runs=None if use is None else use.peak_bytes,
            notices=None if report is not None else run.notices,
        )

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        """Name the client of a command that starts containers, by which they are ended with the worker."""
        client = client_in(words_of(settings.options[RUN])) if RUN in settings.options else ()
        return {**super().environment_for(settings), **({CLIENT: shlex.join(client)} if client else {})}

    @classmethod
    def installed_bytes(cls, in_force: Mapping[str, str]) -> int:
        """Size of the program's file."""
        try:
            return Path(in_force[PROGRAM]).stat().st_size
        except OSError:
            return 0


class CommandRun:
    """One command line that is run again and again. A call that does not exit with status 0 raises CommandFailed."""

    def __init__(
        self,
        words: Sequence[str],
        folder: str,
        *,
        keeps_output: bool,
        looks_at_first: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._looks, self._environment = looks_at_first, environment  # None is that of this process
        self.first_output = b""  # its beginning and that of its errors, where they are looked at
        self._token = os.environ.get(TOKEN) or secrets.token_hex(16)
        self._client, self._folder = client_in(words), folder or None
        self._words = labelled(words, self._token)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (as long as this object)
        self._kept: IO[bytes] | None = _file_in_memory() if keeps_output else None
        self._first: FirstOutput | None = None  # open as long as this object
        self._found: tuple[Notice, ...] | None = None
        self.use: UseOfRuns | None = None  # of runs from now on
        self._newest: Used | None = None  # of these

    def __call__(
        self, within_s: float | None = None, *, before: Sequence[str] = (), passed: Sequence[int] = ()
    ) -> None:
        """Run it within the time, if one is given, as the last words of what comes ``before``, if anything does."""
        for file in (self._errors, self._kept):
            if file is not None:
                os.lseek(file.fileno(), 0, os.SEEK_SET)
                os.ftruncate(file.fileno(), 0)
        began_s = time.perf_counter()
        first = FirstOutput() if self._looks and self._kept is None else None
        kept = first.goes_to if first else subprocess.DEVNULL if self._kept is None else self._kept
        try:
            process = subprocess.Popen(
                [*before, *self._words],
                stdin=subprocess.DEVNULL,
                stdout=kept,
                stderr=self._errors,
                cwd=self._folder,
                env=self._environment,
                pass_fds=passed,
            )
        except (OSError, ValueError) as error:
            raise CommandFailed(f"{self._words[0]} cannot be started: {_reason(error)}") from None
        try:
            if first is not None:
                first.read_until_ended(process)
            elif self.use is not None and within_s is None:
                cpu_s = self.use.wait(process) / 1e9
                self._newest = Used(time.perf_counter() - began_s, cpu_s)
            status = process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise CommandFailed(f"{self._words[0]} did not end within {within_s:g} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                process.wait()
                remove_containers(self._client, self._token)
        if status:
            failed = CommandFailed(f"{self._words[0]} {_ended(status)}{self._last_line()}")
            failed.printed = self.errors()[-_LAST_BYTES:].decode("utf-8", "replace")
            raise failed
        if self._looks:
            printed = first.printed if first else self.output()[:MOST_BYTES]
            self.first_output = printed + b"\n" + self.errors()[:MOST_BYTES]
            self._looks, self._first = False, first

    def notices(self) -> tuple[Notice, ...]:
        """Warn of a program that repeats its work until some time has passed. After runs, of which it makes some."""
        if self._found is None:
            self._found = notices_about(self.first_output)
            halved = partial(run_halved, self._words, self._folder)
            if not self._found and self._newest is not None and times_itself(self._newest, halved):
                self._found = (NOTICE_OF_A_RUN,)
        return self._found

    def output_bytes(self) -> int:
        return 0 if self._kept is None else os.fstat(self._kept.fileno()).st_size

    def output(self) -> bytes:
        return b"" if self._kept is None else _content(self._kept)

    def errors(self) -> bytes:
        return _content(self._errors)

    def _last_line(self) -> str:
        """Find the last line that it printed, but for how to get help, as docker says after what went wrong."""
        lines = self.errors()[-_LAST_BYTES:].decode("utf-8", "replace").split("\n")
        printed = [line for line in reversed(lines) if line.strip()]
        last = next((line for line in printed if "--help" not in line), printed[0] if printed else "")
        missing = next((found[1] for line in lines if (found := _NO_IMAGE.match(line))), "") if self._client else ""
        last = f"no image {missing} is here, nor could it be pulled: {last}" if missing else last
        return f": {shortened(last)}" if last else ""


def fingerprint(output: bytes) -> str:
    """Combine the size and the hash of what a command printed."""
    return f"{len(output)}-{hashlib.sha256(output).hexdigest()}"


def output_of(
    run: str, folder: str, within_s: float = LONGEST_RUN_S, *, reported: str = "", passed: Collection[str] = ()
) -> str:
    """Run the command and fingerprint what it prints now, with the secret variables that are ``passed``."""
    with ScratchFolder() as scratch:
        words = with_report_file(words_of(run), str(scratch / "report")) if reported else words_of(run)
        command = CommandRun(words, folder, keeps_output=True, environment=own_environment(passed))
        try:
            command(within_s=within_s)
        except CommandFailed as error:
            raise InvalidRequest(str(error), code=E_COMMAND) from None
        return fingerprint(command.output())


def program_of(words: Sequence[str], folder: str) -> Path:
    """Find the file that is run: relative to the folder, or in PATH."""
    if folder and not os.path.isdir(folder):  # noqa: PTH112  (False, too, for a name that no folder can have)
        raise CommandFailed(f"{folder} is not a folder")
    named = words[0]
    found = str(Path(folder, named)) if "/" in named else shutil.which(named)
    if found is None or not os.access(found, os.X_OK) or Path(found).is_dir():
        where = f" in {folder}" if folder else ""
        raise CommandFailed(f"{named} is not an executable program{where}")
    return Path(found).resolve()


def require_programs(contestants: Iterable[ContestantName]) -> None:
    """Refuse commands whose program or folder is missing, before a process is started for them."""
    for name in contestants:
        options = name.framework_options
        if name.framework != COMMAND or RUN not in options or name.is_apart:  # its program may be installed for it
            continue
        try:
            program_of(words_of(options[RUN]), options.get(FOLDER, ""))
        except CommandFailed as error:
            raise InvalidRequest(f"{name.text}: {error}", code=E_COMMAND) from None


def _use_of(run: CommandRun, report: OwnReport | None) -> UseOfRuns:
    def run_small(before: Sequence[str], passed: int) -> None:
        run(before=before, passed=(passed,))
        if report is not None:  # or the next run would find its file
            report.keep(run.output, run.errors)

    return UseOfRuns(run_small)


def version_of(words: Sequence[str], folder: str) -> str:
    """Hash the program, so that two builds of it differ; of an interpreter or launcher, the file that it runs too.

    It is empty for one that runs no file: alone, the hash of ``python`` says nothing about ``python -c ...``.
    """
    program = program_of(words, folder)
    if not (_is_launcher(program.name) or _is_launcher(words[0])):
        return _hash_text(program)
    others = (Path(folder, word) for word in words[1:] if not _is_launcher(word))
    script = next((file for file in others if file.is_file()), None)
    return f"{_hash_text(program)}+{_hash_text(script).removeprefix('sha256:')}" if script else ""


def _is_launcher(word: str) -> bool:
    return _LAUNCHER.fullmatch(Path(word).name) is not None


def _hash_text(file: Path) -> str:
    try:
        size = file.stat().st_size
        if size <= _MOST_PROGRAM_BYTES:
            return f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()[:12]}"
    except OSError:  # executable, but not readable
        pass
    return f"{file.stat().st_size} bytes"


def _named(output: str) -> str:
    size, _, digest = output.partition("-")
    return f"{size} bytes with sha256 {digest[:12]}"


def _content(file: IO[bytes]) -> bytes:
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), size, 0)


def _file_in_memory() -> IO[bytes]:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("output"), "w+b")
    return tempfile.TemporaryFile()


def _ended(status: int) -> str:
    if status > 0:
        return f"exited with status {status}"
    try:
        return f"ended with {signal.Signals(-status).name}"
    except ValueError:
        return f"ended with signal {-status}"


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
