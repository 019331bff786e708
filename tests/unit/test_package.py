"""The package itself: names looked up on first use, what pip installs with it, and errors of libraries made short."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path

import fairlap
import pytest
from fairlap import engine
from fairlap.errors import cause_of
from fairlap.frameworks.registry import framework_named
from packaging.requirements import Requirement
from packaging.version import Version


@pytest.mark.parametrize("package", [fairlap, engine])
def test_every_name_is_found_whatever_was_imported_before(package: object) -> None:
    names: list[str] = package.__all__  # type: ignore[attr-defined]
    homes: dict[str, str] = package._HOME  # type: ignore[attr-defined]
    assert sorted(homes) == sorted(names)
    for name, home in homes.items():
        module = import_module(home)
        assert getattr(package, name) is getattr(module, name)
    assert set(names) <= set(dir(package))


@pytest.mark.parametrize("package", ["fairlap", "fairlap.engine"])
def test_no_name_is_that_of_a_module_which_would_take_its_place(package: str) -> None:
    """Importing a module sets its name in the package, in place of the function that was looked up there."""
    assert [name for name in import_module(package)._HOME if find_spec(f"{package}.{name}")] == []


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


CUDA_OF = {("tensorflow", "and-cuda"): "12", ("jax", "cuda13"): "13"}


def majors_of(extra: str) -> set[str]:
    """Return the major versions of CUDA whose libraries an extra installs."""
    found = set()
    for requirement in map(Requirement, EXTRAS[extra]):
        if requirement.name == "fairlap":
            found |= set().union(*map(majors_of, requirement.extras))
        found |= {CUDA_OF[requirement.name, each] for each in requirement.extras if (requirement.name, each) in CUDA_OF}
        if requirement.name.startswith("nvidia-cuda-"):
            found.add("12" if requirement.name.endswith("-cu12") else "13")
    return found


def test_no_extra_installs_libraries_of_two_major_versions_of_cuda() -> None:
    """The wheels of nvidia-cudnn-cu12 and -cu13 both hold nvidia/cudnn/lib/libcudnn.so.9: the last one wins."""
    by_extra = {extra: majors_of(extra) for extra in EXTRAS}
    assert [extra for extra, majors in by_extra.items() if len(majors) > 1] == []
    assert (by_extra["cuda13-frameworks"], by_extra["cuda12-frameworks"]) == ({"13"}, {"12"})


@pytest.mark.parametrize(("package", "extra"), CUDA_OF)
def test_a_frameworks_own_extra_installs_that_major_version_of_cuda(package: str, extra: str) -> None:
    try:
        wanted = [Requirement(each) for each in metadata.requires(package) or ()]
    except metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed; `make test` installs it and runs this")
    own = [each.name for each in wanted if each.marker is not None and each.marker.evaluate({"extra": extra})]
    assert any(re.search(rf"cu(da)?{CUDA_OF[package, extra]}\b", name) for name in own), own


@pytest.mark.parametrize("framework", ["torch", "executorch"])
def test_the_tests_install_the_version_that_an_adapter_installs(framework: str) -> None:
    [own] = [Requirement(each) for each in framework_named(framework).packages if each.startswith(f"{framework}==")]
    assert own.specifier.contains(pins()[framework])


OPENVINO = """Check 'false' failed at src/frontends/tensorflow/src/frontend.cpp:151:
FrontEnd API failed with OpConversionFailure:
Model wasn't fully converted. Summary:
-- No conversion rule found for operations: TensorList
To facilitate the conversion of unsupported operations, refer to the documentation"""


def test_the_places_in_a_librarys_source_are_left_out_and_what_failed_is_kept() -> None:
    found = cause_of(RuntimeError(OPENVINO))
    assert "TensorList" in found
    assert "frontend.cpp" not in found
    assert "documentation" not in found
    assert "\n" not in found


def test_the_first_of_several_errors_is_the_cause() -> None:
    last = RuntimeError("Failed to export the model. This is step 1/3")
    last.__cause__ = ValueError("Cannot view a tensor\n\nOriginal traceback:\n File x, line 83")
    assert cause_of(last) == "ValueError: Cannot view a tensor"


def test_an_error_without_a_text_is_its_type() -> None:
    assert cause_of(KeyError()) == "KeyError"
