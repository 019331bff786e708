"""fairlap itself, its models and the plug-ins of others appear in a contestant's environment as links.

So the worker there runs the very code that runs here, and nothing else of this environment can leak in.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

PLUG_IN_GROUPS = ("fairlap.frameworks", "fairlap.workloads")


def linked_packages() -> tuple[Path, ...]:
    """The folders (or single files) of top-level modules that every worker must be able to import."""
    names = {"fairlap", "bench_models"}
    for group in PLUG_IN_GROUPS:
        for entry in entry_points(group=group):
            names.add(entry.module.partition(".")[0])
    return tuple(sorted(path for name in names if (path := _home_of(name)) is not None))


def link_packages(environment: Path) -> None:
    """Make the links anew: a new fairlap may have been installed since the environment was made."""
    [site] = environment.glob("lib/python*/site-packages")
    for target in linked_packages():
        link = site / target.name
        if link.is_symlink() and link.resolve() == target.resolve():
            continue
        if link.is_symlink():
            link.unlink(missing_ok=True)
        if not link.exists():
            link.symlink_to(target)


def _home_of(name: str) -> Path | None:
    try:
        module = import_module(name)
    except ImportError:
        return None
    file = getattr(module, "__file__", None)
    if file is None:
        return None
    path = Path(file)
    return path.parent if path.name == "__init__.py" else path
