"""What running a plan reaches beyond built-in models and installed frameworks, and which of it is allowed here.

A plan is a program: it names commands, modules and files. One that was drawn on this machine reaches what its user
named. One from elsewhere reaches what somebody else named, so it does not run before its user has allowed that.

What was drawn or allowed here is remembered by a hash of what is reached, in the user's own data folder: not in the
store, which may come from elsewhere too, or be shared.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from fairlap.data.datasets import SYNTHETIC
from fairlap.errors import NotAvailable
from fairlap.machine.files.private_files import make_private_folder, private_opener
from fairlap.machine.files.user_folders import user_data
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_modules import folder_in
from fairlap.request.fields.package_origin import WITH
from fairlap.request.fields.source import Source, is_callable_name
from fairlap.request.fields.started_server import SERVE
from fairlap.request.names import CALL, CALLABLES, COMMAND, FILE, FOLDER, HTTP, PATH, RUN, URL, ContestantName
from fairlap.scenarios.contract import scenarios

_PLAIN = re.compile(r"[A-Za-z0-9_+-]*")  # an option's value that names no file, module or address
_REACHING = (CALLABLES, COMMAND, HTTP)  # frameworks whose options are what runs, or where inputs are sent


def reach_of(plan: Plan) -> tuple[str, ...]:
    """List each command, callable, path, address, package and clock that a plan reaches, sorted.

    It is empty where built-in works run in installed frameworks. Commands and callables stand with their folder, since
    ``./bench`` is another program in another folder, and in quotes, so that no two that differ make the same line. What
    was allowed in a sandbox is not allowed outside of one.
    """
    lines = [line for name in plan.contestants for line in _of_contestant(name, plan)]
    lines += [f"the clock of the GPU, which is locked at {plan.lock_clocks}"] if plan.lock_clocks else []
    lines += [f"data {plan.data}"] if plan.data not in ("", SYNTHETIC) else []
    for work in plan.works:
        if work.source is not None:
            lines += _of_source(work.source)
        if work.start is not None:
            lines.append(f"weights {Path(work.start.path).absolute()}")
        if work.scale is not None:
            lines += [f"host {host}" for host in work.scale.hosts]
        lines += [line for each in scenarios() for line in each.reaches(work)]
    return tuple(sorted(set(lines)))


def _of_contestant(name: ContestantName, plan: Plan) -> Iterator[str]:
    where = ", in a sandbox" if plan.sandbox or dict(name.options).get("sandbox") == "on" else ""
    yield from (f"{line}{where}" for line in _reached_by(name, folder_in(plan.modules, name)))


def _reached_by(name: ContestantName, imported_from: str | None) -> Iterator[str]:
    options = dict(name.options)
    if name.program:
        yield f"program {Path(name.program).absolute()}"
    if name.version:
        yield f"package {name.variant if name.framework == SERVE else name.framework}{name.version}"
    if name.release:
        yield f"package {name.release}"
    if name.framework == COMMAND:
        yield f"command {_quoted(options.get(RUN, ''))} in {_folder(options.get(FOLDER))}"
    elif name.framework == CALLABLES:
        yield f"callable {_quoted(options.get(CALL, ''))} in {_folder(imported_from or options.get(PATH))}"
    elif name.framework == HTTP:
        yield f"server {_quoted(options.get(URL, ''))}"
    elif name.framework == SERVE:
        yield f"server {_quoted(_started(name))}, which is started in {_folder(None)}"
    shown = {WITH, FILE, *((RUN, FOLDER, URL, CALL, PATH) if name.framework in _REACHING else ())}
    shown |= {*options} if name.framework == SERVE else set()
    for option, value in options.items():
        if option not in shown and not (_PLAIN.fullmatch(option) and _PLAIN.fullmatch(value)):
            yield f"option {_quoted(f'{option}={value}')} of {name.framework or name.program}"


def _started(name: ContestantName) -> str:
    """Its name and all of its options: each may be a program, a file or an address."""
    return " ".join((name.variant, *(f"{option}={value}" for option, value in name.options))).strip()


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _folder(given: str | None) -> str:
    return _quoted(str(Path(given or ".").absolute()))


def _of_source(source: Source) -> Iterator[str]:
    if source.of_callables:
        yield f"reference {_quoted(source.shown)} in {_folder(source.checkout or source.folder)}"
    else:
        code = ", which may run code when it is read" if source.trust else ""
        where = f" in {_folder(source.checkout)}" if source.checkout else ""
        yield f"model {source.path}{where}{code}"
        yield from (f"model {path}{code}" for path in source.exports)
    yield from (f"folder {source.folder}",) if source.folder else ()
    yield from (f"inputs {source.inputs}",) if source.inputs else ()
    yield from (f"labels {source.labels}",) if source.labels else ()
    yield from (f"groups {source.groups}",) if source.groups else ()
    yield from (f"loss {source.loss}",) if is_callable_name(source.loss) else ()
    yield from (f"file {path}" for path, _ in source.files)


def is_allowed(reach: tuple[str, ...]) -> bool:
    """Whether plans that reach exactly this were drawn or allowed on this machine."""
    if not reach:
        return True
    try:
        return _digest(reach) in _record().read_text("ascii").split()
    except (OSError, NotAvailable, UnicodeDecodeError):  # NotAvailable: the user has no home folder
        return False


def allow(plan: Plan) -> None:
    """Where nothing can be written, the plan is asked about again."""
    reach = reach_of(plan)
    if is_allowed(reach):
        return
    with contextlib.suppress(OSError, NotAvailable):
        record = _record()
        make_private_folder(record.parent)
        with open(record, "ab", buffering=0, opener=private_opener) as file:
            file.write(f"{_digest(reach)}\n".encode())  # appended at once, so that races may do so side by side


def _digest(reach: tuple[str, ...]) -> str:
    return hashlib.sha256(msgspec.json.encode(reach)).hexdigest()


def _record() -> Path:
    return user_data() / "allowed-plans"
