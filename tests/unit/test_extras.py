"""What pip installs with fairlap: extras take what a user has, and pins stand in constraints.txt."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from fairlap.frameworks.registry import framework_named
from packaging.requirements import Requirement
from packaging.version import Version

TOP = Path(__file__).parents[2]
EXTRAS = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["optional-dependencies"]
ABANDONED = {"mxnet"}  # its last release works with one NumPy only
REQUIREMENTS = [
    (extra, requirement)
    for extra, requirements in EXTRAS.items()
    if extra not in ABANDONED
    for requirement in map(Requirement, requirements)
]


def pins() -> dict[str, Version]:
    lines = (TOP / "constraints.txt").read_text().splitlines()
    pinned = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {each.name: Version(str(each.specifier).removeprefix("==")) for each in pinned}


@pytest.mark.parametrize(("extra", "requirement"), REQUIREMENTS, ids=lambda each: str(each).replace("/", " "))
def test_an_extra_takes_a_newer_minor_version_than_the_one_that_the_tests_install(
    extra: str, requirement: Requirement
) -> None:
    assert not [each for each in requirement.specifier if each.operator in ("==", "===", "~=")]
    if pinned := pins().get(requirement.name):
        assert requirement.specifier.contains(pinned)
        assert requirement.specifier.contains(f"{pinned.major}.{pinned.minor + 1}.0")


@pytest.mark.parametrize("framework", ["torch", "executorch"])
def test_the_tests_install_the_version_that_an_adapter_installs(framework: str) -> None:
    [own] = [Requirement(each) for each in framework_named(framework).packages if each.startswith(f"{framework}==")]
    assert own.specifier.contains(pins()[framework])
