"""Which models there are: ours, and those that other packages bring."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import bench_models
from fairlap.errors import WrongRequest, described
from fairlap.workloads.spec import Spec

GROUP = "fairlap.workloads"


@dataclass(frozen=True)
class Found:
    spec: Spec
    package: str


def workload_names() -> list[str]:
    """Sorted; no model is imported."""
    return sorted(_packages())


def find(name: str) -> Found:
    packages = _packages()
    if name not in packages:
        import difflib

        near = difflib.get_close_matches(name, packages, n=3)
        told = f"did you mean {', '.join(near)}?" if near else "`fairlap list models` lists them"
        raise WrongRequest(f"there is no model {name!r}; {told}")
    package = packages[name]
    try:
        spec = import_module(f"{package}.spec").SPEC
    except (Exception, SystemExit) as error:
        raise WrongRequest(f"the model {name} from {package} cannot be loaded: {described(error)}") from error
    if not isinstance(spec, Spec):
        raise WrongRequest(f"{package}.spec.SPEC is a {type(spec).__name__}, not a Spec")
    return Found(spec, package)


def _packages() -> dict[str, str]:
    from importlib.metadata import entry_points  # costs 25 ms, and a worker seldom needs it

    [home] = bench_models.__path__
    ours = {path.parent.name: f"bench_models.{path.parent.name}" for path in Path(home).glob("*/spec.py")}
    return {**{entry.name: entry.value for entry in entry_points(group=GROUP)}, **ours}
