"""Open a user's model in a separate process, so that a file that crashes its reader does not end this one."""

from __future__ import annotations

import atexit
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import msgspec

from fairlap import quantity_text
from fairlap.errors import shortened
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.launch.resident_limit import ResidentLimit
from fairlap.launch.worker_lost import OomKills, oom_kills
from fairlap.machine.available_memory import available_memory_bytes
from fairlap.machine.files.scratch_folder import ScratchFolder
from fairlap.machine.lack_of_memory import reports_memory
from fairlap.machine.programs.orphans import in_own_session
from fairlap.machine.programs.passed_environment import own_environment
from fairlap.models.sources.bundle import bundle_in
from fairlap.models.sources.confinement import LIMIT_S
from fairlap.models.sources.contract import Bundle, SourceError
from fairlap.models.sources.exports.files import folder_of, forms_of, sources_of
from fairlap.models.sources.opening import Order, Outcome
from fairlap.models.sources.registry import place_of, require_kind
from fairlap.request.fields.source import Source

ON_A_CPU = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}

LEAST_TO_READ_S = 120.0  # however short a budget is: a large model is exported and computed in float64

_MOST_OF_MEMORY = 0.8  # of what is available when a model is opened
_LOOKED_AT_EVERY_S = 0.1

_opened: dict[tuple[Source, tuple[tuple[str, int], ...], bool], Path] = {}
_passed: dict[Path, tuple[str, ...]] = {}


def opened(
    source: Source,
    seeds: Mapping[str, int],
    notify: Callable[[str], None] = lambda _: None,
    passed: tuple[str, ...] = (),
    *,
    fp8: bool = False,
    budget_s: float | None = None,
) -> tuple[Path, Bundle]:
    """Open the source once in a process, with the secret variables that are ``passed``.

    It may take half an hour, or with a budget as long as that, but no less than two minutes. With ``fp8`` the bundle
    also has what is allowed of answers in fp8.

    Returns the folder of the source's bundle, and the bundle; of several files of one model, that of the selected one.

    Raises SourceError when the model cannot be raced, also when its files are others than those of the source.
    """
    source, number = msgspec.structs.replace(source, export=0), source.export
    whose, drawn = msgspec.structs.replace(source, files=()), tuple(seeds.items())
    key = (whose, drawn, fp8 or (whose, drawn, True) in _opened)
    if key not in _opened or (source.files and source.files != bundle_in(_opened[key]).files):
        what = "reading the model and computing its float64 reference"
        if source.of_callables:
            what = "computing the answers to compare with"
        elif source.of_data:
            what = "reading and decoding all items, which passes are compared with"
        within_s = LIMIT_S if budget_s is None else max(budget_s, LEAST_TO_READ_S)
        longest = f"for {quantity_text.rough_duration(within_s)} at most"
        if budget_s is not None and budget_s < within_s:
            longest += f", also with a budget of {quantity_text.seconds(budget_s)}"
        notify(f"{source.shown}: {what} ({longest})")
        folder = _open(Order(source, dict(seeds), _scratch(), fp8), passed, within_s)
        _require_own(folder, source)
        _opened[key] = folder
    _passed[_opened[key]] = passed
    folder = folder_of(_opened[key], number)
    return folder, bundle_in(folder)


def passed_to(folder: Path) -> tuple[str, ...]:
    """Names of the secret variables with which the source in the folder was opened."""
    return _passed.get(folder, ())


def _require_own(folder: Path, source: Source) -> None:
    """Refuse a bundle of another source or kind.

    What was written where the model was read decides neither what contestants trust nor what they import.
    """
    bundle = bundle_in(folder)
    if bundle.source != msgspec.structs.replace(source, files=()) or bundle.kind != place_of(require_kind(source)):
        raise SourceError(f"{source.shown} changed the request while it was opened", code="E_SOURCE_TRUST")
    if source.exports:
        for number, own in enumerate(sources_of(source, forms_of(bundle.spec.inputs))[1:], start=1):
            _require_own(folder_of(folder, number), own)


def process_of_source(module: str, *, errors: int, passed: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
    """One in which a model from a file is alive. To terminate it ends its guardian, which ends all of it."""
    return in_own_session(
        [sys.executable, "-P", "-m", module],
        guarded=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env={**own_environment(passed), **ON_A_CPU, "TMPDIR": _scratch()},
    )


def _open(order: Order, passed: tuple[str, ...], within_s: float) -> Path:
    shown = order.source.shown
    kills = oom_kills()
    with process_of_source("fairlap.models.sources.opening", errors=subprocess.PIPE, passed=passed) as process:
        available = available_memory_bytes() or sys.maxsize
        limit = ResidentLimit(
            process.pid, int(_MOST_OF_MEMORY * available), every_s=_LOOKED_AT_EVERY_S, with_files=False
        )
        try:
            with limit:
                printed, errors = process.communicate(msgspec.json.encode(order), timeout=within_s)
        except subprocess.TimeoutExpired:
            longer = "" if within_s == LIMIT_S else "; a longer --budget allows more"
            message = f"{shown} was not read within {quantity_text.rough_duration(within_s)}{longer}"
            raise SourceError(message, code="E_TIMEOUT") from None
        finally:
            process.terminate()  # does nothing when it has ended
    if limit.exceeded:
        message = f"{shown} was given up: {limit.exceeded}, of {quantity_text.size(available)} available"
        raise SourceError(message, code="E_SOURCE_SIZE")
    try:
        outcome = msgspec.json.decode(printed, type=Outcome)
    except NOT_THE_DOCUMENT:
        if lack := _lack_of_memory(process.returncode, errors, kills):
            held = f"held {quantity_text.size(limit.most_bytes)} of {quantity_text.size(available)} available"
            message = f"{shown}: memory ran out while its reference was computed, in a process that {held} ({lack})"
            raise SourceError(message, code="E_SOURCE_SIZE") from None
        message = f"{shown} ended the process that read it: {_end_of(process.returncode, errors)}"
        raise SourceError(message) from None
    if outcome.code:
        named = any(each and each in outcome.message for each in (shown, order.source.path, order.source.text))
        raise SourceError(outcome.message if named else f"{shown}: {outcome.message}", code=outcome.code)
    return Path(outcome.folder)


def _lack_of_memory(status: int, errors: bytes, before: OomKills) -> str:
    """By what a process that did not answer shows that it lacked memory; empty where it does not."""
    if status == -signal.SIGKILL and oom_kills().rose_since(before):
        return "the kernel killed it"
    lines = [line for line in errors.decode(errors="replace").splitlines() if reports_memory(line)]
    return shortened(lines[-1].strip()) if lines and status else ""


def _end_of(status: int, errors: bytes) -> str:
    lines = errors.decode(errors="replace").strip().splitlines()
    last = f" ({shortened(lines[-1])})" if lines else ""
    if status < 0:
        return f"{signal.Signals(-status).name}{last}"
    return f"exit status {status}{last}"


@cache
def _scratch() -> str:
    """For sources whose files are not known, and which are therefore opened again by each command.

    Libraries that read models leave temporary files in it, also where their process is killed.
    """
    folder = ScratchFolder()
    atexit.register(folder.remove)
    return str(folder.path)
