"""Environments of releases: installed when they are raced, and kept as those of other contestants are."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from fairlap.bisection.bisect_request import E_BISECT, BisectRequest
from fairlap.bisection.bisection import ChangedPackage
from fairlap.bisection.contestants import contestant_of
from fairlap.bisection.points.releases import Releases
from fairlap.errors import InvalidRequest
from fairlap.frameworks.registry import framework_named
from fairlap.launch.environments import Environment, environment_with
from fairlap.launch.packages.installed_packages import hidden_by, packages_in
from fairlap.launch.packages.making import making_of
from fairlap.launch.packages.origins import with_pinned_origins
from fairlap.launch.runners import requirements_of
from fairlap.machine.software import package_of


class Installed:
    """``built`` are the versions that were installed, also in an earlier part of the search.

    The side of a race that a release is raced as is the requirement that installs it.
    """

    def __init__(self, request: BisectRequest, releases: Releases, built: set[str]) -> None:
        self.built = built
        self._request, self._releases = request, releases

    def side(self, version: str, notify: Callable[[str], None]) -> str:
        """Install the release, unless its environment is there. Raises InstallFailed where pip cannot."""
        with self._made(version, notify) as made:
            self._require_found(made)
        self.built.add(version)
        return self._releases.requirement(version)

    def changed(self, before: str, after: str) -> tuple[ChangedPackage, ...]:
        """List the packages that differ between the environments of two versions, the release itself first."""
        own = package_of(self._releases.package)
        with self._made(before, _say_nothing) as old, self._made(after, _say_nothing) as new:
            then, now = packages_in(old), packages_in(new)
        names = sorted({*then, *now}, key=lambda name: (name != own, name))
        return tuple(
            ChangedPackage(name, then.get(name), now.get(name)) for name in names if then.get(name) != now.get(name)
        )

    def _made(self, version: str, notify: Callable[[str], None]) -> AbstractContextManager[Environment]:
        """Hold the environment of the contestant, whose processes then run in the same one."""
        requirement = self._releases.requirement(version)
        [name] = with_pinned_origins([contestant_of(self._request, "", requirement)])
        needed = requirements_of(name, framework_named(name.framework), "cpu", (self._request.model.precision,))
        return environment_with(needed, notify, making_of(name.options))

    def _require_found(self, made: Environment) -> None:
        """Refuse a folder from which the package would be imported in place of the release."""
        places = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
        places = [str(Path.cwd()), *places] if self._request.imports_from_here else places
        if (hidden := hidden_by(made, self._releases.package, places)) is not None:
            raise InvalidRequest(
                f"{hidden[0]} would be imported from {hidden[1]} in place of the releases; run it in another folder, "
                "or without PYTHONPATH",
                code=E_BISECT,
            )


def _say_nothing(_line: str) -> None:
    """Of an environment that was made before."""
