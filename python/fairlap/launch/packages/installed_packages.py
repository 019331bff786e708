"""What is installed in an environment that was made for a contestant, and what would be imported in its place."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.machinery import PathFinder
from importlib.metadata import Distribution, distributions

from fairlap.launch.environments import Environment
from fairlap.machine.software import package_of


def packages_in(made: Environment) -> dict[str, str]:
    """List the versions by the names of the packages."""
    return {package_of(each.metadata["Name"]): each.version for each in _distributions_in(made)}


def hidden_by(made: Environment, package: str, places: Sequence[str]) -> tuple[str, str] | None:
    """Find a module of the package that would be imported from one of these places, and where; None without any."""
    for found in _distributions_in(made):
        for module in _modules_of(found) if package_of(found.metadata["Name"]) == package_of(package) else ():
            spec = PathFinder.find_spec(module, places)
            if spec is not None and spec.origin is not None:
                return module, spec.origin
    return None


def _distributions_in(made: Environment) -> list[Distribution]:
    return list(distributions(path=[str(each) for each in made.folder.glob("lib/python*/site-packages")]))


def _modules_of(found: Distribution) -> set[str]:
    """Name its top-level modules, by its files."""
    tops = {(each.parts[0], len(each.parts)) for each in found.files or () if each.suffix in (".py", ".so")}
    names = {top if depth > 1 else top.partition(".")[0] for top, depth in tops}
    return {name for name in names if name.isidentifier()}
