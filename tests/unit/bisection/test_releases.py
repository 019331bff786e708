"""``fairlap bisect --releases`` on wheels that pip lists, with races whose outcome is known."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import fairlap
import msgspec
import numpy as np
import pytest
from command_line import invoke, refusal
from fairlap.bisection import searching
from fairlap.bisection.answer import commands_across
from fairlap.bisection.bisect_request import BisectRequest, RacedModel, key_of
from fairlap.bisection.bisection import Bisection, ChangedPackage
from fairlap.bisection.contestants import contestant_of, fields_between
from fairlap.bisection.points import installed, pip_index
from fairlap.bisection.points import releases as points
from fairlap.bisection.points.history import History
from fairlap.bisection.points.releases import releases_between, releases_named
from fairlap.bisection.races import Raced
from fairlap.errors import FairlapError
from fairlap.frameworks.registry import framework_named
from fairlap.launch.environments import Environment, InstallFailed
from fairlap.launch.runners import requirements_of
from fairlap.machine.files.user_folders import work_cache
from raced_commits import raced_at
from wheels import write_releases, write_wheel

VERSIONS = ["1.0", "1.1", "1.2", "1.9", "1.10rc1", "1.10", "2.0.dev20260101", "2.0", "2.1", "2.2+cpu"]
SLOW_FROM = "1.10"


def version_in(requirement: str) -> str:
    return re.split(r"-py3|#", re.split(r"hotpkg-|==", requirement)[1])[0].replace("%2B", "+")


class Races:
    """In place of real ones, with environments in place of those that pip makes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.random = np.random.default_rng(7)
        self.between: list[tuple[str, str]] = []
        self.sides: list[tuple[str, str]] = []
        self.uninstallable: set[str] = set()
        self.interrupted_at = 0

    def __call__(self, request: BisectRequest, earlier: str, later: str, blocks: int | None, *_: Any) -> Raced:
        first, last = (version_in(each) for each in (earlier, later))
        self.between.append((first, last))
        self.sides.append((earlier, later))
        if len(self.between) == self.interrupted_at:
            raise KeyboardInterrupt
        slow = VERSIONS.index(SLOW_FROM)
        level = 0.26 * (int(VERSIONS.index(last) >= slow) - int(VERSIONS.index(first) >= slow))
        logs = level + self.random.normal(0, 0.01, blocks or 8)
        return raced_at(level, logs)

    @contextmanager
    def environment_with(self, requirements: tuple[str, ...], *_: object) -> Iterator[Environment]:
        version = version_in(requirements[0])
        if version in self.uninstallable:
            raise InstallFailed(f"installing {requirements[0]} failed: no such thing")
        folder = self.folder / hashlib.sha256(requirements[0].encode()).hexdigest()[:8]
        site = folder / "lib/python3.11/site-packages"
        is_slow = VERSIONS.index(version) >= VERSIONS.index(SLOW_FROM)
        for name, own in (("hotpkg", version), ("dependency", "2.0" if is_slow else "1.0")):
            info = site / f"{name}-{own}.dist-info"
            info.mkdir(parents=True, exist_ok=True)
            (site / f"{name}.py").touch()
            (info / "METADATA").write_text(f"Name: {name}\nVersion: {own}\n")
            (info / "RECORD").write_text(f"{name}.py,,\n{name}-{own}.dist-info/RECORD,,\n")
        yield Environment("key", folder, requirements, "now")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("releases") / "wheels"
    write_releases(folder, VERSIONS, slow_from=SLOW_FROM, steps=10)
    return folder


_listed_once = cache(pip_index.versions_of)  # by pip, of the same wheels in most tests: it takes a second each time


@pytest.fixture
def races(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wheels: Path) -> Races:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setattr(points, "versions_of", _listed_once)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    found = Races(tmp_path / "envs")
    monkeypatch.setattr(searching, "race", found)
    monkeypatch.setattr(installed, "environment_with", found.environment_with)
    return found


def bisected(*options: object, releases: object = "hotpkg", bad: str = "2.1") -> Bisection:
    ends = ("--releases", releases, "--good", "1.0", "--bad", bad, "--call", "hotpkg:fn")
    done = invoke("bisect", *ends, "-q", "--json", *options)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    found = msgspec.json.decode(done.stdout, type=Bisection)
    assert done.exit_code == found.exit_status
    return found


def test_the_release_of_an_index_is_named_in_the_order_of_versions_and_without_pre_releases(races: Races) -> None:
    found = bisected()
    assert (found.outcome, found.package, found.commits) == ("found", "hotpkg", 6)  # 1.1 1.2 1.9 1.10 2.0 2.1
    assert found.commit is not None
    assert (found.commit.version, found.commit.commit) == (SLOW_FROM, "")
    assert (found.good.version, found.bad.version) == ("1.0", "2.1")
    assert races.between[0] == ("1.0", "2.1")
    assert races.between[-1] == ("1.9", "1.10")
    assert found.step is not None
    assert found.step.value == pytest.approx(np.exp(0.26))
    assert found.changed == (ChangedPackage("hotpkg", "1.9", "1.10"), ChangedPackage("dependency", "1.0", "2.0"))
    assert races.sides[0] == ("hotpkg==1.0", "hotpkg==2.1")
    assert not [each for each in work_cache().rglob("*") if each.is_file()]


@pytest.mark.slow
def test_pre_releases_of_an_index_count_where_an_end_is_one(races: Races) -> None:
    found = bisected(bad="2.0.dev20260101")
    assert found.commits == 6  # 1.1 1.2 1.9 1.10rc1 1.10 2.0.dev20260101
    assert found.commit is not None
    assert found.commit.version == SLOW_FROM


@pytest.mark.slow
def test_wheels_race_by_their_content_and_another_build_of_a_wheel_is_another_search(
    races: Races, tmp_path: Path, wheels: Path
) -> None:
    shutil.copytree(wheels, tmp_path / "wheels")
    found = bisected(releases="../wheels", bad="2.2+cpu")
    assert (found.outcome, found.commits) == ("found", len(VERSIONS) - 1)
    wheel = tmp_path / "wheels/hotpkg-1.0-py3-none-any.whl"
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert races.sides[0][0] == f"hotpkg @ {wheel.as_uri()}#sha256={digest}"
    request = BisectRequest(good="1.0", bad="2.0", releases=("../wheels/*.whl",))
    before = key_of(request, history(request))
    write_wheel(tmp_path / "wheels", "hotpkg", "1.1", {"hotpkg.py": "another = 1\n"})
    assert key_of(request, history(request)) != before


def history(request: BisectRequest) -> History:
    return releases_between(request, releases_named(request.releases), lambda _: None)


def test_wheels_that_a_shell_listed_are_those_of_the_pattern(races: Races, wheels: Path) -> None:
    files = sorted(wheels.glob("hotpkg-1.*.whl"))
    found = bisected(*files[1:], releases=files[0], bad="1.10")
    assert (found.outcome, found.commits) == ("found", 5)


@pytest.mark.slow
def test_of_several_wheels_of_a_version_pip_chooses_and_those_of_other_systems_are_left_out(
    races: Races, tmp_path: Path
) -> None:
    folder = tmp_path / "nightlies"
    for version in ("1.0", "1.1", "1.2"):
        write_wheel(folder, "hotpkg", version, {"hotpkg.py": ""}, tag="cp27-none-win32")
        write_wheel(folder, "hotpkg", version, {"hotpkg.py": ""})
    write_wheel(folder, "hotpkg", "1.3", {"hotpkg.py": ""}, tag="cp27-none-win32")
    releases = releases_named([str(folder)])
    lines: list[str] = []
    request = BisectRequest(good="1.0", bad="v1.2.0", releases=(str(folder),))
    assert [each.id for each in releases_between(request, releases, lines.append).points] == ["1.0", "1.1", "1.2"]
    assert len(lines) == 1
    assert "hotpkg-1.1-py3-none-any.whl" in releases.requirement("1.1")


def test_a_release_that_does_not_install_is_skipped_with_its_reason(races: Races) -> None:
    races.uninstallable = {"1.9"}
    found = bisected()
    assert (found.outcome, found.exit_status) == ("several_suspects", 3)
    assert [each.version for each in found.suspects] == ["1.9", "1.10"]
    [skipped] = [each for each in found.tried if each.ratio is None]
    assert (skipped.version, skipped.code) == ("1.9", "E_INSTALL")


def test_an_end_that_does_not_install_is_an_error(races: Races) -> None:
    races.uninstallable = {"1.0"}
    with pytest.raises(FairlapError) as caught:
        bisected()
    assert caught.value.code == "E_INSTALL"
    assert not races.between


def test_an_interrupted_search_of_releases_goes_on(races: Races) -> None:
    races.interrupted_at = 3
    done = invoke("bisect", "--releases", "hotpkg", "--good", "1.0", "--bad", "2.1", "--call", "hotpkg:fn", "-q")
    assert done.exit_code == 130
    before = list(races.between)
    assert bisected().outcome == "found"
    assert races.between[len(before)] == before[-1]
    assert races.between.count(("1.0", "2.1")) == 1


def test_a_folder_that_hides_the_releases_is_refused(races: Races, tmp_path: Path) -> None:
    Path("hotpkg.py").write_text("def fn(): pass\n")
    with pytest.raises(FairlapError) as caught:
        bisected()
    assert caught.value.code == "E_BISECT"
    assert not races.between


def test_the_function_has_the_arguments_of_the_command_and_a_typed_result(races: Races, wheels: Path) -> None:
    found = fairlap.bisect("1.0", "2.1", call="hotpkg:fn", releases=wheels, sure="95%", races=30)
    assert isinstance(found, fairlap.Bisection)
    assert found.commit is not None
    assert (found.commit.version, found.sure) == (SLOW_FROM, 0.95)
    wrongs: tuple[dict[str, Any], ...] = ({"nonsense": 1}, {"call": ""}, {"quantity": "energy"})
    for wrong in wrongs:
        given: dict[str, Any] = {"call": "hotpkg:fn", "releases": "hotpkg", **wrong}
        with pytest.raises(fairlap.InvalidRequest) as caught:
            fairlap.bisect("1.0", "2.1", **given)
        assert caught.value.code == "E_BISECT"


def test_a_model_runs_in_the_environments_of_its_race_and_profiling_commands_follow() -> None:
    request = BisectRequest(
        good="1.30",
        bad="1.31",
        releases=("onnxruntime",),
        model=RacedModel(model="convnet", on="onnxruntime:graph=x", batch=8),
    )
    name = contestant_of(request, "base", "onnxruntime==1.30.0")
    framework = framework_named("onnxruntime")
    assert requirements_of(name, framework) == ("onnxruntime==1.30.0", framework.packages[1])
    other = contestant_of(request, "base", "hotpkg==1.0")
    assert requirements_of(other, framework) == ("hotpkg==1.0", *framework.packages)
    fields = fields_between(request, {"base": "onnxruntime==1.30.0", "change": "onnxruntime==1.31.0"})
    assert fields["models"] == ("convnet",)
    assert (fields["batch"], len(fields["contestants"])) == (8, 2)
    index = History((), "onnxruntime", "release")
    first, second, last = commands_across(request, index, "1.30.0", "1.31.0")
    assert "--on onnxruntime==1.30.0:graph=x --batch 8" in first
    assert "--on onnxruntime==1.31.0:graph=x --batch 8" in second
    assert "--profile" in first
    assert last == "fairlap diff before.json after.json"
    assert commands_across(request, History((), "numpy", "release"), "1", "2") == ()


@pytest.mark.parametrize(
    "options",
    [
        ("--good", "3.0"),
        ("--good", "2.1", "--bad", "1.0"),
        ("--releases", "a-package-that-is-nowhere"),
        ("--releases", "./nothing"),
        ("--releases", "--index-url=evil"),
        ("--command", "./run", "--call", ""),
        ("--call", ""),
        ("--prepare", "make"),
        ("--inputs", "draws:draw"),
        ("--on", "torch"),
        ("--call", "", "mlp"),
        ("--call", "", "mlp", "--on", "torch:best"),
        ("--call", "", "mlp", "--on", "python:call=a.b"),
        ("--quantity", "time_to_first", "--command", "./run", "--call", ""),
    ],
)
def test_what_cannot_be_searched_is_refused_before_anything_runs(races: Races, options: tuple[str, ...]) -> None:
    given = {"--releases": "hotpkg", "--good": "1.0", "--bad": "2.1", "--call": "hotpkg:fn"}
    models = [each for each in options if each == "mlp"]
    named = [each for each in options if each != "mlp"]
    given |= dict(zip(named[::2], named[1::2], strict=True))
    assert refusal("bisect", *(f"{name}={value}" for name, value in given.items()), *models).code == "E_BISECT"
    assert not races.between
    assert not (races.folder).exists()


def test_importing_the_function_loads_nothing_heavy() -> None:
    code = (
        "from fairlap import bisect; import sys; print(sorted({'numpy', 'scipy', 'msgspec', 'click'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
