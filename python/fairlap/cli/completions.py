"""What a shell is offered while a value is typed: models, contestants with variants and versions, stored runs."""

from __future__ import annotations

from collections.abc import Iterable

_NEWEST_RUNS = 20


def models(typed: str) -> Iterable[str]:
    """Built-in ones and those of installed packages; the shell adds files."""
    from fairlap.models.names import workload_names

    return workload_names()


def one_of_several(names: Iterable[str], typed: str) -> Iterable[str]:
    """After what was typed before the last comma."""
    before, comma, _ = typed.rpartition(",")
    return [f"{before}{comma}{each}" for each in names]


def contestants(typed: str) -> Iterable[str]:
    """Complete the last of several: ``torch,jax:`` has jax's variants, and ``torch==`` the installed versions."""
    return one_of_several(_contestants_like(typed.rpartition(",")[2]), typed)


def _contestants_like(typed: str) -> list[str]:
    from fairlap.frameworks.registry import framework_named, framework_names

    name, equals, _ = typed.partition("==")
    if equals:
        return [f"{name}=={version}" for version in _versions_made_of(name)]
    name, colon, _ = typed.partition(":")
    if colon and name in framework_names():
        return [f"{name}:{variant}" for variant in framework_named(name).variants if variant]
    return framework_names()


def _versions_made_of(name: str) -> list[str]:
    """Those that have an environment here, so that a race needs to install nothing."""
    from fairlap.frameworks.registry import framework_named, framework_names
    from fairlap.launch.environments import environments

    if name not in framework_names() or not (packages := framework_named(name).packages):
        return []
    package = packages[0].partition("==")[0]
    pinned = (each.requirements[0].partition("==") for each in environments() if each.requirements)
    return sorted({version for found, _, version in pinned if found == package})


def runs(typed: str) -> Iterable[str]:
    """``last`` and the newest ones; none where there is no store."""
    from fairlap.errors import FairlapError
    from fairlap.store.store import open_store

    try:
        with open_store(reading=True) as store:
            return ["last", *(each.run for each in store.runs(limit=_NEWEST_RUNS))]
    except FairlapError:
        return []
