"""Callables of a request whose answers are checked: their reference, and the function that draws their arguments."""

from __future__ import annotations

import os
from pathlib import Path

from fairlap.errors import InvalidRequest
from fairlap.request.fields.source import PREFIX_OF_CALLABLES, Source, dims_in, is_callable_name
from fairlap.request.names import CALL, CALLABLES, PATH, ContestantName
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import CALLABLE
from fairlap.worker.process_options import process_options_in

CODE = "E_REFERENCE"
_NOT_OF_CALLABLES = ("shapes", "ranges", "labels", "groups", "corrupt", "metric", "data", "batch", "generate")


def source_of_callables(request: RaceRequest) -> Source | None:
    """Name the reference and what draws, both from the current folder; None where answers are not compared."""
    if request.inputs is None:
        if request.reference is not None:
            raise InvalidRequest("--reference takes --inputs MODULE:CALLABLE too, which draws the arguments", code=CODE)
        return None
    _require_functions(request)
    for field in _NOT_OF_CALLABLES:
        if getattr(request, field) not in (None, ()):
            option = "range" if field == "ranges" else field
            raise InvalidRequest(
                f"--{option} is for models; callables get what {request.inputs} draws, in the sizes of --dims",
                code="E_SHAPES",
            )
    for name in request.contestants:
        if name.framework != CALLABLES:
            raise InvalidRequest(f"{name.text} is not a callable, so it cannot be given what --inputs draws", code=CODE)
    peer = None if request.reference is not None else _first(request)
    options = {} if peer is None else peer.framework_options
    return Source(
        CALLABLE,
        PREFIX_OF_CALLABLES + (request.reference or ":".join(options[CALL].rpartition(".")[::2])),
        str(Path.cwd()),
        dims=dims_in(request.dims or ""),
        inputs=request.inputs,
        trust=request.trust,
        among_others=len(request.models) > 1,
        peer="" if peer is None else peer.text,
        checkout=str(Path(options[PATH]).absolute()) if PATH in options else "",
    )


def _require_functions(request: RaceRequest) -> None:
    for option, text in (("--inputs", request.inputs), ("--reference", request.reference)):
        if text is not None and (not is_callable_name(text) or os.path.lexists(text)):
            raise InvalidRequest(
                f"{option} of callables is of the form MODULE:CALLABLE, such as my_kernels:draw (got {text!r})",
                code=CODE,
            )


def _first(request: RaceRequest) -> ContestantName:
    """Find the contestant that serves as the reference, which runs once outside of the race."""
    if not request.contestants:
        raise InvalidRequest("name the callables with --on, such as python:call=my_kernels.softmax", code=CODE)
    first = request.contestants[0]
    if not is_callable_name(":".join(first.framework_options.get(CALL, "").rpartition(".")[::2])):
        raise InvalidRequest(f"{first.text} names no callable, such as python:call=my_kernels.softmax", code=CODE)
    if first.is_apart:
        raise InvalidRequest(
            f"{first.text} would be the reference, which is not installed here; name a callable of the current folder "
            "with --reference",
            code=CODE,
        )
    if request.sandbox or process_options_in(first.framework_options).sandbox:
        raise InvalidRequest(
            f"{first.text} would be the reference, which runs outside of the sandbox; give another with --reference",
            code="E_SANDBOX",
        )
    return first
