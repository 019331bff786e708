"""An interpreter for a framework: this one, or that of the separate environment that fairlap makes for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.launch.environments import environment_with
from fairlap.launch.runners import requirements_of
from fairlap.request.names import contestant_named

SEPARATE = ("paddle",)
"""Wants packages of another age than those of the other frameworks. Tests of it are marked ``heavy_environments``."""


def skip_unless_available(contestant: str) -> None:
    framework = contestant_named(contestant).framework
    if framework not in SEPARATE and not is_importable(framework_named(framework)):
        pytest.skip(f"{contestant} is not installed here; `make test` installs it and runs this")


@contextmanager
def python_with(contestant: str) -> Iterator[str]:
    name = contestant_named(contestant)
    framework = framework_named(name.framework)
    if is_importable(framework):
        yield sys.executable
        return
    with environment_with(requirements_of(name, framework), lambda _: None) as made:
        yield str(made.python)
