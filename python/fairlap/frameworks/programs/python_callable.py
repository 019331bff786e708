"""A plain Python callable as a contestant: ``python:call=my_kernels.softmax`` on the model ``callable``.

``path=FOLDER`` imports it from a checkout, so that two versions of one module race. With arguments that were drawn for
it (``--inputs``), its answers are checked as those of a model are; else it is called without any.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

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
from fairlap.frameworks.programs.imported_callable import imported_callable
from fairlap.models.arrays import Arrays
from fairlap.models.sources.callables.functions import require_from, search_first
from fairlap.models.workload import Workload
from fairlap.request.fields.package_origin import INSTALLED_FIRST

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
