"""Both sides of a race as fields of its request: trees of two commits, or environments with two releases."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairlap.bisection.bisect_request import BisectRequest
from fairlap.pull_request.sides import benchmark_contestant, callables, programs
from fairlap.request.fields.package_origin import WITH
from fairlap.request.names import CALL, CALLABLES, ContestantName, Contestants, contestant_named
from fairlap.request.work import CALLABLE
from fairlap.worker.process_options import CHECKOUT

Side = Path | str
"""The folder of a commit's tree, or the requirement that installs a release."""


def fields_between(request: BisectRequest, sides: Mapping[str, Side]) -> dict[str, Any]:
    """Name what races, and its contestants by their sides."""
    benchmark, asked = request.benchmark, request.model
    folders = {name: side for name, side in sides.items() if isinstance(side, Path)}
    if request.member is not None:
        names = [benchmark_contestant(name, request.member, side) for name, side in sides.items()]
        return {"models": (CALLABLE,), "contestants": Contestants.of(names)}
    if benchmark.command:
        return programs(benchmark.command, folders, benchmark.reported, request.pass_env)
    if benchmark.call and folders:
        return callables(benchmark.call, folders)
    contestants = Contestants.of([contestant_of(request, name, side) for name, side in sides.items()])
    if benchmark.call:
        return {"models": (CALLABLE,), "contestants": contestants}
    given = {"batch": asked.batch, "dims": asked.dims, "shapes": asked.shapes, "trust": asked.trust}
    return {
        "models": (asked.model,),
        "contestants": contestants,
        "mode": asked.mode,
        "precision": asked.precision,
        **{name: value for name, value in given.items() if value},
    }


def contestant_of(request: BisectRequest, name: str, side: Side) -> ContestantName:
    """Name a benchmark, a callable or a framework that runs from a tree, or with a release."""
    if request.member is not None:
        return benchmark_contestant(name, request.member, side)
    place = (CHECKOUT, str(side)) if isinstance(side, Path) else (WITH, side)
    if request.benchmark.call:
        call = (CALL, request.benchmark.call.replace(":", "."))
        return ContestantName(name, CALLABLES, options=(call, place))
    on = contestant_named(request.model.on)
    return ContestantName(name, on.framework, on.version, on.variant, (*on.options, place), best=on.best)
