"""Modules of the user that a plan imports: where they were found, and the hashes of their code.

They are found and read here, never imported, since that would run them in the parent process.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

import msgspec

from fairlap.engine.measurement import Notice
from fairlap.errors import InvalidRequest
from fairlap.models.sources.callables.functions import SOURCES
from fairlap.request.fields.source import PREFIX_OF_CALLABLES, Source, is_callable_name
from fairlap.request.names import CALL, CALLABLES, PATH, ContestantName
from fairlap.request.work import Work

_MOST_FILES = 1_000  # of a module; a change in a larger package is not looked for
_INSTALLED = ("stdlib", "platstdlib", "purelib", "platlib")


class PlanModule(msgspec.Struct, frozen=True):
    """One that contestants or works import, without the installed ones."""

    name: str  # the first part of its name
    path: str  # the folder that a contestant named for it; empty where it was searched for
    folder: str  # in which it was found
    files: tuple[tuple[str, str], ...]  # of its code, relative to that folder, each with its SHA-256


def modules_of(contestants: Iterable[ContestantName], works: Iterable[Work]) -> tuple[PlanModule, ...]:
    """Find what a plan imports; what is not found is left to the process that needs it."""
    wanted = [_of_contestant(name) for name in contestants]
    wanted += [(name, "") for work in works for name in _of_work(work)]
    found = []
    for name, path in dict.fromkeys(wanted):
        folder = _folder_of(name, path) if name else None
        if folder is not None and not _is_installed(folder):
            found.append(PlanModule(name, path, str(folder), _hashes(name, folder)))
    return tuple(found)


def with_modules_then(
    contestants: tuple[ContestantName, ...], works: tuple[Work, ...], modules: tuple[PlanModule, ...]
) -> tuple[tuple[ContestantName, ...], tuple[Work, ...], tuple[PlanModule, ...]]:
    """Let contestants and works import their modules from where these were found then, or from here if that is gone.

    The modules get their folders of now, and keep the hashes of then. Raises InvalidRequest for one that is nowhere.
    """
    placed = {(each.name, each.path): _placed(each) for each in modules}
    return (
        tuple(_contestant_then(name, placed) for name in contestants),
        tuple(_work_then(work, placed) for work in works),
        tuple(placed.values()),
    )


def require_not_hidden(contestants: Iterable[ContestantName], works: Iterable[Work]) -> None:
    """Refuse a package of a contestant that the folder of a model has as well, which would be imported in its place."""
    folders = {work.source.folder for work in works if work.source and is_callable_name(work.source.path)}
    for name in contestants:
        module = re.split(r"\[|==| @ ", name.release, maxsplit=1)[0].replace("-", "_")
        spec = _spec(module, sorted(folders)) if module and folders else None
        if spec is not None:
            raise InvalidRequest(
                f"{name.text}: {module} would be imported from {spec.origin}, beside the model, and not from what is "
                "installed; race in another folder",
                code="E_CONTESTANT",
            )


def changed_code(modules: Iterable[PlanModule]) -> Notice | None:
    """Warn of files of code that are not those of then; of modules whose files were not recorded nothing is known."""
    changed: dict[str, None] = {}
    for each in modules:
        then, now = dict(each.files), dict(_hashes(each.name, Path(each.folder)))
        if then:
            changed |= dict.fromkeys(_differing(then, now))
    return Notice("W_CODE_CHANGED", f"the code changed since: {', '.join(changed)}") if changed else None


def differing_code(before: Iterable[PlanModule], after: Iterable[PlanModule]) -> list[str]:
    """Name the files of modules that both plans import, as far as their code is known, which are not the same."""
    then, now = (
        {(module.name, name): digest for module in modules for name, digest in module.files}
        for modules in (before, after)
    )
    modules = {module for module, _ in then} & {module for module, _ in now}
    return list(dict.fromkeys(name for module, name in _differing(then, now) if module in modules))


def _differing(then: Mapping[Any, str], now: Mapping[Any, str]) -> list[Any]:
    """List the files that either has, by name or by module and name, whose hashes are not the same."""
    return sorted(file for file in {*then, *now} if then.get(file) != now.get(file))


def folder_in(modules: Iterable[PlanModule], name: ContestantName) -> str | None:
    """Find where a contestant's callable is imported from; None where that is not known."""
    key = _of_contestant(name)
    return next((each.folder for each in modules if (each.name, each.path) == key), None)


def _placed(module: PlanModule) -> PlanModule:
    """With the folder of now; with it as the path too, where a search would not find it there."""
    here = _folder_of(module.name, module.path)
    if _has(module.name, module.folder):
        return module if here == Path(module.folder) else msgspec.structs.replace(module, path=module.folder)
    if here is None:
        raise InvalidRequest(
            f"the module {module.name} is not here, nor in {module.folder}, where it was: restore it there, or run this"
            " in the folder that has it",
            code="E_MODULE",
        )
    return msgspec.structs.replace(module, folder=str(here))


def _of_contestant(name: ContestantName) -> tuple[str, str]:
    """Name its module and the folder for it; nothing where what is installed for the contestant comes first."""
    options = name.framework_options if name.framework == CALLABLES and not name.release else {}
    module = options.get(CALL, "").rpartition(".")[0]
    return module.partition(".")[0], options.get(PATH, "")


def _of_work(work: Work) -> Iterator[str]:
    if work.source is not None:
        yield from _of_source(work.source)
    if work.stages is not None:
        yield from map(_first_part, work.stages.functions)


def _of_source(source: Source) -> Iterator[str]:
    for text in (source.path.removeprefix(PREFIX_OF_CALLABLES), source.inputs, source.loss):
        if is_callable_name(text) and not source.checkout:
            yield _first_part(text)


def _first_part(function: str) -> str:
    return function.partition(":")[0].partition(".")[0]


def _contestant_then(name: ContestantName, placed: Mapping[tuple[str, str], PlanModule]) -> ContestantName:
    key = _of_contestant(name)
    if key not in placed or placed[key].path == key[1]:
        return name
    others = tuple(option for option in name.options if option[0] != PATH)
    return msgspec.structs.replace(name, options=(*others, (PATH, placed[key].path)))


def _work_then(work: Work, placed: Mapping[tuple[str, str], PlanModule]) -> Work:
    source, stages = work.source, work.stages
    for name in () if source is None else _of_source(source):
        if source is not None and (folder := _moved_to(name, source.folder, placed)):
            source = msgspec.structs.replace(source, folder=folder)
    for name in () if stages is None else map(_first_part, stages.functions):
        if stages is not None and (folder := _moved_to(name, stages.folder, placed)):
            stages = msgspec.structs.replace(stages, folder=folder)
    return msgspec.structs.replace(work, source=source, stages=stages)


def _moved_to(name: str, folder: str, placed: Mapping[tuple[str, str], PlanModule]) -> str:
    """Find the folder that now has a module which its work would not find; empty where there is none."""
    module = placed.get((name, ""))
    return module.folder if module is not None and module.path and not _has(name, folder) else ""


def _folder_of(name: str, path: str) -> Path | None:
    """Search as a worker does: in the folder that was named, the current one, and those of Python."""
    first = [Path(path), Path(path) / SOURCES] if path else []
    places = [*(str(each.absolute()) for each in first), str(Path.cwd()), *filter(None, sys.path)]
    spec = _spec(name, places)
    if spec is None:
        return None
    if spec.submodule_search_locations is not None:
        return next((Path(place).absolute().parent for place in spec.submodule_search_locations), None)
    return Path(spec.origin).absolute().parent if spec.origin else None


def _has(name: str, folder: str) -> bool:
    return _spec(name, [folder]) is not None


def _spec(name: str, places: list[str]) -> ModuleSpec | None:
    """None also for what no file is named, as a plan from elsewhere may have it."""
    try:
        return PathFinder.find_spec(name, places)
    except (ImportError, ValueError, OSError):
        return None


def _is_installed(folder: Path) -> bool:
    return any(folder.is_relative_to(sysconfig.get_path(kind)) for kind in _INSTALLED)


def _hashes(name: str, folder: Path) -> tuple[tuple[str, str], ...]:
    """Of its code, and of the code beside it that this imports; none where it is too much to read."""
    unread, seen, files = [name], {name}, dict[str, str]()
    while unread:
        for file in _files_of(unread.pop(), folder):
            if len(files) == _MOST_FILES:
                return ()
            try:
                content = file.read_bytes()
            except OSError:
                continue
            files[str(file.relative_to(folder))] = hashlib.sha256(content).hexdigest()
            beside = {each for each in _imported(content) if _has(each, str(folder))} if file.suffix == ".py" else set()
            unread += sorted(beside - seen)
            seen |= beside
    return tuple(sorted(files.items()))


def _files_of(name: str, folder: Path) -> Iterator[Path]:
    spec = _spec(name, [str(folder)])
    if spec is None:
        return
    if spec.submodule_search_locations is None:
        yield from (Path(spec.origin),) if spec.origin else ()
    else:
        for place in spec.submodule_search_locations:
            yield from Path(place).rglob("*.py")


def _imported(content: bytes) -> set[str]:
    """First parts of the names of modules that the code imports."""
    try:
        nodes = list(ast.walk(ast.parse(content)))
    except (SyntaxError, ValueError, RecursionError):
        return set()
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    return {name.partition(".")[0] for name in names}
