"""Packages look their names up on first use; every name is there, and none is shadowed by a module of its own name."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import fairlap
import pytest
from fairlap import engine


@pytest.mark.parametrize("package", [fairlap, engine])
def test_every_name_is_found_whatever_was_imported_before(package: object) -> None:
    names: list[str] = package.__all__  # type: ignore[attr-defined]
    homes: dict[str, str] = package._HOME  # type: ignore[attr-defined]
    assert sorted(homes) == sorted(names)
    for name, home in homes.items():
        module = import_module(home)
        assert getattr(package, name) is getattr(module, name)
    assert set(names) <= set(dir(package))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        engine.nothing  # noqa: B018


def test_timing_on_the_cpu_loads_nothing_that_times_streams() -> None:
    script = (
        "import sys; from fairlap.engine import measure; measure(int, samples=1); "
        "print([name for name in sys.modules if name.startswith('fairlap.engine') and 'stream' in name])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "fairlap.engine.cuda.stream_calls" not in done.stdout
