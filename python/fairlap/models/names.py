"""The names of models: of built-in ones, of the sizes of their families, and of those in installed packages.

Imports no model.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fairlap.plugins import places_in_packages
from fairlap.request.fields.source import is_callable_name

GROUP = "fairlap.workloads"
SIZES = "sizes.toml"
_BUILT_IN = Path(__file__).parents[1] / "bench_models"


def workload_names() -> list[str]:
    """Sorted. Imports no model."""
    return sorted(model_packages())


def is_function(text: str) -> bool:
    """Whether this is ``module:function``, and not one size of a family."""
    return is_callable_name(text) and text not in workload_names()


def is_unknown_size(text: str) -> bool:
    """Whether this names a size that a model does not have: its first part is a model and no module that is at hand."""
    name = text.partition(":")[0]
    names = workload_names()
    if ":" not in text or text in names or not any(name == each.partition(":")[0] for each in names):
        return False
    return not (Path(f"{name}.py").exists() or Path(name).is_dir() or find_spec(name) is not None)


def model_packages() -> dict[str, str]:
    return {**places_in_packages(GROUP), **built_in_packages()}


def built_in_packages() -> dict[str, str]:
    names: list[str] = []
    for path in _BUILT_IN.glob("*/spec.py"):
        family = path.parent.name
        names += [f"{family}:{size}" for size in sizes_of_family(family)] or [family]
    return {name: f"fairlap.bench_models.{name}" for name in names}


@cache
def sizes_of_family(family: str) -> Mapping[str, Mapping[str, Any]]:
    """Read what distinguishes the built-in models of a family, by the name of the size; empty for a single model."""
    file = _BUILT_IN / family / SIZES
    return tomllib.loads(file.read_text("utf-8")) if file.is_file() else {}


def family_of(name: str) -> str:
    """Name the family of which a built-in model is one size; empty for any other."""
    family, _, size = name.partition(":")
    return family if size and size in sizes_of_family(family) else ""


@cache
def former_names() -> Mapping[str, str]:
    families = [path.parent.name for path in _BUILT_IN.glob(f"*/{SIZES}")]
    return {
        own["formerly"]: f"{family}:{size}"
        for family in families
        for size, own in sizes_of_family(family).items()
        if "formerly" in own
    }
