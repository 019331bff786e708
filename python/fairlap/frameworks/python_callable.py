"""A plain Python callable as a contestant: ``python:call=my_kernels.softmax``, racing on the model ``callable``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from fairlap.frameworks.answers import named_outputs
from fairlap.frameworks.contract import NO_WEIGHTS, Contestant, Framework, Phase, Settings, Unsupported
from fairlap.frameworks.refusals import refuse_what_is_unknown
from fairlap.importing import imported_callable
from fairlap.workloads.workload import Arrays, Workload

_ONLY_MODEL = "callable"


class PythonCallable(Framework):
    name = "python"
    packages = ()
    module = "builtins"

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted, options=("call",))
        if work.spec.name != _ONLY_MODEL:
            raise Unsupported(f"python runs no models; race it on {_ONLY_MODEL!r}")
        if "call" not in wanted.options:
            raise Unsupported("name what to call, such as python:call=my_kernels.softmax")
        module, _, name = wanted.options["call"].rpartition(".")
        if not module:
            raise Unsupported(f"python:call={name} names no module; write it as python:call=MODULE.CALLABLE")
        with phase("import"):
            called = imported_callable(f"{module}:{name}")
        if inspect.iscoroutinefunction(called):
            raise Unsupported(
                f"{module}.{name} is an async function: a call runs nothing of it; wrap it in one that waits"
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
            in_force={"threads": "the callable's own", "precision": NO_WEIGHTS},
        )

    def version(self) -> str:
        import platform

        return platform.python_version()
