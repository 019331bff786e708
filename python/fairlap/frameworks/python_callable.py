"""A plain Python callable as a contestant: ``python:call=my_kernels.softmax`` on the model ``callable``.

``path=FOLDER`` imports it from a checkout, so that two versions of one module race.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from fairlap.errors import InvalidRequest, described
from fairlap.frameworks.adapter_parts.answers import named_outputs
from fairlap.frameworks.contract import (
    NO_WEIGHTS,
    Contestant,
    Framework,
    Phase,
    Settings,
    Unsupported,
    refuse_what_is_unknown,
)
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload


def imported_callable(target_name: str) -> Callable[[], object]:
    """Import MODULE:CALLABLE, searching the current folder first, as ``python -m`` does."""
    module_name, colon, path = target_name.partition(":")
    if not colon or not module_name or not path:
        raise InvalidRequest(f"{target_name!r} is not of the form MODULE:CALLABLE, such as math:factorial")
    if module_name.endswith(".py") or "/" in module_name:
        file = Path(module_name)
        where = "" if file.parent == Path() else f" in the folder {file.parent}"
        raise InvalidRequest(f"{module_name} is a file; name its module: {file.stem}:{path}{where}")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: object = import_module(module_name)
    except ModuleNotFoundError as error:
        raise InvalidRequest(f"cannot import {module_name}: {error}") from error
    except (Exception, SystemExit) as error:
        raise InvalidRequest(f"importing {module_name} raised {described(error)}") from error
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise InvalidRequest(f"{module_name} has no {path!r}") from None
    if not callable(found):
        raise InvalidRequest(f"{target_name} is a {type(found).__name__}, not a callable")
    return found


_ONLY_MODEL = "callable"
_SOURCES = "src"  # where many checkouts have their packages


def _search_first(path: str) -> None:
    """Search the folder and its ``src`` before every other place, the current folder too."""
    folder = Path(path).absolute()
    if not folder.is_dir():
        raise InvalidRequest(f"path={path} is not a folder")
    sys.path[:0] = [*(str(each) for each in (folder, folder / _SOURCES) if each.is_dir()), ""]


def _require_from(path: str, module: str) -> None:
    """Refuse a module from another place.

    An editable installation may put itself before every path, and both contestants would be one.
    """
    found = sys.modules[module]
    places = [found.__file__] if found.__file__ else list(found.__path__)
    if not any(Path(place).resolve().is_relative_to(Path(path).resolve()) for place in places):
        raise InvalidRequest(f"{module} was imported from {places[0]}, not from {path}; is it installed as editable?")


class PythonCallable(Framework):
    name = "python"
    packages = ()
    module = "builtins"
    options: ClassVar = {"call": (), "path": ()}

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        if work.spec.name != _ONLY_MODEL:
            raise Unsupported(f"python runs callables, not models; use the model {_ONLY_MODEL!r}")
        if "call" not in wanted.options:
            raise Unsupported("name what to call, such as python:call=my_kernels.softmax")
        module, _, name = wanted.options["call"].rpartition(".")
        if not module:
            raise Unsupported(f"python:call={name} lacks a module; write it as python:call=MODULE.CALLABLE")
        with phase("import"):
            path = wanted.options.get("path", "")
            if path:
                _search_first(path)
            called = imported_callable(f"{module}:{name}")
            if path:
                _require_from(path, module)
        if inspect.iscoroutinefunction(called):
            raise Unsupported(
                f"{module}.{name} is an async function, which a call does not run; wrap it in a function that waits"
            )

        def bind(inputs: Arrays) -> Callable[[], Any]:
            ticket = inputs["ticket"]

            def call() -> Any:
                called()
                return ticket

            return call

        return Contestant(
            bind=bind,
            done=None,
            outputs=lambda ticket: named_outputs(work.spec, [ticket]),
            weights=dict,
            in_force={
                "threads": "the callable's own",
                "precision": NO_WEIGHTS,
                "file": getattr(sys.modules[module.partition(".")[0]], "__file__", None) or "built in",
            },
        )

    def version(self) -> str:
        import platform

        return platform.python_version()
