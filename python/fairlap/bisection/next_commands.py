"""The commands that name what became slower between the release that was found and the one before it."""

from __future__ import annotations

import shlex

from fairlap.bisection.bisect_request import BisectRequest
from fairlap.bisection.points.history import History
from fairlap.frameworks.registry import framework_named
from fairlap.machine.software import package_of
from fairlap.request.names import contestant_named

_BEFORE, _AFTER = "before.json", "after.json"


def commands_across(request: BisectRequest, history: History, before: str, after: str) -> tuple[str, ...]:
    """Profile both versions, and compare the runs; none where the releases are not those of a framework in an index."""
    if history.noun != "release" or history.content or not request.model.model:
        return ()
    on = contestant_named(request.model.on)
    packages = framework_named(on.framework).packages
    if not packages or package_of(packages[0]) != package_of(history.of):
        return ()
    further = on.text.removeprefix(on.framework + on.version)
    profiled = [
        _compare(request, f"{on.framework}=={version}{further}", file)
        for version, file in ((before, _BEFORE), (after, _AFTER))
    ]
    return (*profiled, f"fairlap diff {_BEFORE} {_AFTER}")


def _compare(request: BisectRequest, contestant: str, file: str) -> str:
    asked = request.model
    words = ["fairlap", "compare", asked.model, "--on", contestant]
    usual = {"mode": "infer", "precision": "fp32"}
    named = {
        "batch": asked.batch,
        "mode": asked.mode,
        "precision": asked.precision,
        "dims": asked.dims,
        "inputs": request.benchmark.inputs,
        "threads": request.threads,
    }
    for option, value in named.items():
        words += [f"--{option}", str(value)] if value and value != usual.get(option) else []
    words += [word for each in asked.shapes for word in ("--shapes", each)]
    words += ["--trust"] if asked.trust else []
    return shlex.join([*words, "--blocks", "12", "--profile", "-o", file])
