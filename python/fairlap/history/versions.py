"""The versions of a run's contestants: then, and as they would be now."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version

from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.race.run import Run


def versions_then(then: Run) -> dict[str, str]:
    return {process.contestant: process.version for process in then.processes if process.version}


def versions_now(then: Run) -> dict[str, str]:
    """Of contestants whose version the plan leaves open; the others have an environment made for their version."""
    found = versions_then(then)
    for name in then.plan.contestants:
        if name.framework and not name.version:
            now = _version_now(name.framework, then.plan.device)
            # Some report more than their package does: 2026.4.1-21919-4f8a, or a local part.
            if now and not re.fullmatch(rf"{re.escape(now)}([-+ ].*)?", found.get(name.text, "")):
                found[name.text] = now
    return found


def _version_now(framework_name: str, device: str) -> str:
    """Find the version that is installed here, or that an environment would be made with. Empty without a package."""
    framework = framework_named(framework_name)
    if not framework.packages:
        return ""
    wanted, _, tried = framework.packages_for(device)[0].partition("==")
    package = wanted.partition("[")[0]
    if not is_importable(framework):
        return tried
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
