"""A plain Python callable as a contestant: ``python:call=my_kernels.softmax`` on the model ``callable``.

``path=FOLDER`` imports it from a checkout, so that two versions of one module race. With arguments that were drawn for
it (``--inputs``), its answers are checked as those of a model are; else it is called without any.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from fairlap.errors import InvalidRequest, described
from fairlap.frameworks.adapter_parts.answers import named_outputs
from fairlap.frameworks.adapter_parts.calls_of_form import CallsOfForm
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
from fairlap.models.sources.callables.functions import require_from, search_first
from fairlap.models.workload import Workload
from fairlap.request.fields.package_origin import INSTALLED_FIRST
from fairlap.suggestions import part_named


def imported_callable(target_name: str, *, here_last: bool = False) -> Callable[[], object]:
    """Import MODULE:CALLABLE, searching the current folder first, as ``python -m`` does, or after all others."""
    module_name, colon, path = target_name.partition(":")
    if not colon or not module_name or not path:
        raise InvalidRequest(f"{target_name!r} is not of the form MODULE:CALLABLE, such as math:factorial")
    if module_name.endswith(".py") or "/" in module_name:
        file = Path(module_name)
        where = "" if file.parent == Path() else f" in the folder {file.parent}"
        raise InvalidRequest(f"{module_name} is a file; name its module: {file.stem}:{path}{where}")
    if "" not in sys.path:
        sys.path.insert(len(sys.path) if here_last else 0, "")
    try:
        found: object = import_module(module_name)
    except ModuleNotFoundError as error:
        raise InvalidRequest(f"cannot import {module_name}: {error}") from error
    except (Exception, SystemExit) as error:
        raise InvalidRequest(f"importing {module_name} raised {described(error)}") from error
    found = part_named(found, path, module_name)
    if not callable(found):
        raise InvalidRequest(f"{target_name} is a {type(found).__name__}, not a callable")
    return found


_ONLY_MODEL = "callable"


class PythonCallable(Framework):
    name = "python"
    packages = ()
    module = "builtins"
    options: ClassVar = {"call": (), "path": ()}

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        form = work.implementation(self.name) if work.package.startswith("/") else None
        if form is None and work.spec.name != _ONLY_MODEL:
            raise Unsupported(f"python runs callables, not models; use the model {_ONLY_MODEL!r}")
        if "call" not in wanted.options:
            raise Unsupported("name what to call, such as python:call=my_kernels.softmax")
        module, _, name = wanted.options["call"].rpartition(".")
        if not module:
            raise Unsupported(f"python:call={name} lacks a module; write it as python:call=MODULE.CALLABLE")
        with phase("import"):
            path = wanted.options.get("path", "")
            if path:
                search_first(path)
            called = imported_callable(f"{module}:{name}", here_last=INSTALLED_FIRST in os.environ)
            if path:
                require_from(path, module)
        if inspect.iscoroutinefunction(called):
            raise Unsupported(
                f"{module}.{name} is an async function, which a call does not run; wrap it in a function that waits"
            )
        in_force = {
            "threads": "the callable's own",
            "precision": NO_WEIGHTS,
            "file": getattr(sys.modules[module.partition(".")[0]], "__file__", None) or "built in",
        }
        if form is not None:
            return CallsOfForm(form, called).contestant(in_force)
        return _unchecked(work, called, in_force)

    def version(self) -> str:
        import platform

        return platform.python_version()


def _unchecked(work: Workload, called: Callable[[], object], in_force: Mapping[str, str]) -> Contestant:
    """Without arguments, and whatever it returns."""

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
        in_force=in_force,
    )
