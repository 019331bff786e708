"""Libraries of the user's own that contestants load, such as custom operators: code, so only with trust.

A plan from elsewhere is asked about them with everything else that it reaches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.frameworks.registry import framework_named
from fairlap.request.names import ContestantName
from fairlap.request.work import Work


def with_libraries_found(contestants: Sequence[ContestantName], *, trust: bool) -> tuple[ContestantName, ...]:
    """Write every library as an absolute path; raise InvalidRequest for one that is not here or not trusted."""
    return tuple(_found(name, trust=trust) for name in contestants)


def libraries_of(name: ContestantName) -> Iterator[tuple[str, str]]:
    """Name each option of it that is a library, with its path."""
    named = framework_named(name.framework).libraries if name.framework else ()
    return ((option, value) for option, value in name.options if option in named)


def first_library(contestants: Sequence[ContestantName]) -> str:
    """Find the one with which a model is opened: that of the first contestant which has one."""
    return next((path for name in contestants for _, path in libraries_of(name)), "")


def require_used(contestants: Sequence[ContestantName], works: Sequence[Work]) -> None:
    """Refuse a library where no model can have its operators."""
    takes = any(work.source is not None and work.source.custom_ops for work in works)
    for name in contestants if not takes else ():
        for option, _ in libraries_of(name):
            raise InvalidRequest(
                f"{name.text}: {option}= is for an ONNX model of your own with custom operators", code="E_CONTESTANT"
            )


def _found(name: ContestantName, *, trust: bool) -> ContestantName:
    changed = {}
    for option, value in libraries_of(name):
        path = Path(value).expanduser().absolute()
        if not path.is_file():
            raise InvalidRequest(f"{name.text}: there is no file {value}", code="E_CONTESTANT")
        if not trust:
            raise InvalidRequest(
                f"{name.text}: {value} is code that {name.framework} loads; add --trust if you trust it",
                code="E_SOURCE_TRUST",
            )
        changed[option] = str(path)
    if not changed:
        return name
    options = tuple((option, changed.get(option, value)) for option, value in name.options)
    return msgspec.structs.replace(name, options=options)
