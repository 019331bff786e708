"""Environments of releases: installed when they are raced, and kept as those of other contestants are."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.metadata import Distribution, distributions
from pathlib import Path

from fairlap.bisection.bisect_request import E_BISECT, BisectRequest
from fairlap.bisection.bisection import ChangedPackage
from fairlap.bisection.contestants import contestant_of
from fairlap.bisection.points.releases import Releases
from fairlap.errors import InvalidRequest
from fairlap.frameworks.registry import framework_named
from fairlap.launch.environments import Environment, environment_with
from fairlap.launch.runners import package_of, requirements_of


class Installed:
    """``built`` are the versions that were installed, also in an earlier part of the search.

    The side of a race that a release is raced as is the requirement that installs it.
    """

    def __init__(self, request: BisectRequest, releases: Releases, built: set[str]) -> None:
        self.built = built
        self._request, self._releases = request, releases

    def side(self, version: str, notify: Callable[[str], None]) -> str:
        """Install the release, unless its environment is there. Raises InstallFailed where pip cannot."""
        requirement = self._releases.requirement(version)
        with environment_with(self._requirements(requirement), notify) as made:
            self._require_found(made)
        self.built.add(version)
        return requirement

    def changed(self, before: str, after: str) -> tuple[ChangedPackage, ...]:
        """List the packages that differ between the environments of two versions, the release itself first."""
        own = package_of(self._releases.package)
        with (
            environment_with(self._requirements(self._releases.requirement(before)), _say_nothing) as old,
            environment_with(self._requirements(self._releases.requirement(after)), _say_nothing) as new,
        ):
            then, now = _packages_in(old), _packages_in(new)
        names = sorted({*then, *now}, key=lambda name: (name != own, name))
        return tuple(
            ChangedPackage(name, then.get(name), now.get(name)) for name in names if then.get(name) != now.get(name)
        )

    def _requirements(self, requirement: str) -> tuple[str, ...]:
        """Those of the contestant, whose processes then run in the same environment."""
        name = contestant_of(self._request, "", requirement)
        return requirements_of(name, framework_named(name.framework), "cpu", (self._request.model.precision,))

    def _require_found(self, made: Environment) -> None:
        """Refuse a folder from which the package would be imported in place of the release."""
        places = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
        places = [str(Path.cwd()), *places] if self._request.imports_from_here else places
        own = package_of(self._releases.package)
        for found in _distributions_in(made):
            for module in _modules_of(found) if package_of(found.metadata["Name"]) == own else ():
                spec = PathFinder.find_spec(module, places)
                if spec is not None and spec.origin is not None:
                    raise InvalidRequest(
                        f"{module} would be imported from {spec.origin} in place of the releases; run it in another "
                        "folder, or without PYTHONPATH",
                        code=E_BISECT,
                    )


def _say_nothing(_line: str) -> None:
    """Of an environment that was made before."""


def _distributions_in(made: Environment) -> list[Distribution]:
    return list(distributions(path=[str(each) for each in made.folder.glob("lib/python*/site-packages")]))


def _packages_in(made: Environment) -> dict[str, str]:
    return {package_of(each.metadata["Name"]): each.version for each in _distributions_in(made)}


def _modules_of(found: Distribution) -> set[str]:
    """Name its top-level modules, by its files."""
    tops = {(each.parts[0], len(each.parts)) for each in found.files or () if each.suffix in (".py", ".so")}
    names = {top if depth > 1 else top.partition(".")[0] for top, depth in tops}
    return {name for name in names if name.isidentifier()}
