"""``fairlap bisect`` over releases and of models: real environments without a network, in fresh processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from fairlap.bisection.bisection import Bisection, ChangedPackage
from fairlap.frameworks.registry import framework_named
from fairlap.request.names import BENCHMARK
from histories_of_commits import git
from interrupted_bisect import interrupt_after_a_race
from wheels import offline_variables, write_releases

LIMIT_S = 800.0
VERSIONS = [f"1.{number}" for number in range(7)]
SLOW_FROM = "1.4"
STEPS = 2_000  # of a call, which then is shorter than what the system gives a process at once
NET = """\
import torch

try:
    from hotpkg import fn
except ImportError:  # where the model is opened, only its answers matter
    fn = int
STEPS = {steps}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layer = torch.nn.Linear(16, 4)

    def forward(self, rows):
        for _ in range(STEPS):
            fn()
        return self.layer(rows)


def build():
    return Net(), (torch.ones(2, 16),)
"""


def bisect(folder: Path, cache: Path, variables: dict[str, str], *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "fairlap", "bisect", *options, "--threads", "1", "--json", "-q"]
    own = {"FAIRLAP_CACHE": str(cache), "FAIRLAP_ENVS": str(cache / "envs")}
    return subprocess.Popen(
        command, cwd=folder, env={**os.environ, **own, **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def answer(process: subprocess.Popen[bytes]) -> Bisection:
    printed, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, (printed, errors)
    return msgspec.json.decode(printed, type=Bisection)


@pytest.mark.timeout(1800)
def test_a_slow_release_is_named_after_ctrl_c_and_with_one_that_does_not_install(tmp_path: Path) -> None:
    variables = offline_variables(tmp_path / "needs")
    cache, work = tmp_path / "cache", tmp_path / "work"
    work.mkdir()
    write_releases(tmp_path / "wheels", VERSIONS, slow_from=SLOW_FROM, broken=("1.2",), steps=STEPS)
    options = (
        "--releases", "../wheels", "--good", "1.0", "--bad", "1.6", "--call", "hotpkg:fn", "--seconds", "100ms",
    )  # fmt: skip
    first = bisect(work, cache, variables, *options)
    interrupt_after_a_race(first, cache, LIMIT_S)

    found = answer(bisect(work, cache, variables, *options))
    assert (found.outcome, found.package, found.commits) == ("found", "hotpkg", 6)
    assert found.commit is not None
    assert found.commit.version == SLOW_FROM
    assert found.step is not None
    assert found.step.value == pytest.approx(1.3, rel=0.15)
    assert found.changed == (ChangedPackage("hotpkg", "1.3", SLOW_FROM),)
    assert {each.version for each in found.tried if each.code} <= {"1.2"}
    assert not list(cache.glob("bisect/*"))
    listed = subprocess.run(
        [sys.executable, "-m", "fairlap", "envs", "--json"],
        env={**os.environ, "FAIRLAP_ENVS": str(cache / "envs")}, capture_output=True, check=True,
    )  # fmt: skip
    kept = json.loads(listed.stdout)["environments"]
    assert {each["state"] for each in kept} == {"complete"}
    raced = {each.version for each in found.tried if not each.code} | {"1.0", "1.3"}
    assert len(kept) == len(raced)
    installed = " ".join(requirement for each in kept for requirement in each["requirements"])
    assert all(f"hotpkg-{version}-" in installed for version in ("1.0", "1.3", SLOW_FROM, "1.6"))


ASV = """\
from hotpkg import fn

pytestmark = pytest.mark.slow


class Calls:
    params = [1, 2]
    param_names = ["times"]

    def time_fn(self, times):
        for _ in range(times):
            fn()

    def time_nothing(self, times):
        pass
"""


@pytest.mark.timeout(1800)
def test_the_release_is_named_that_made_a_benchmark_of_asv_slower(tmp_path: Path) -> None:
    variables = offline_variables(tmp_path / "needs", *framework_named(BENCHMARK).packages)
    suite = tmp_path / "work/benchmarks"
    suite.mkdir(parents=True)
    (suite / "__init__.py").touch()
    (suite / "bench_calls.py").write_text(ASV)
    write_releases(tmp_path / "wheels", VERSIONS[:4], slow_from="1.2", steps=20_000)
    found = answer(
        bisect(
            tmp_path / "work", tmp_path / "cache", variables, "--releases", "../wheels", "--good", "1.0", "--bad",
            "1.3", "--suite", "benchmarks", "--only", "bench_calls.Calls.time_fn(times=2)", "--seconds", "100ms",
        )
    )  # fmt: skip
    assert (found.outcome, found.package, found.commits) == ("found", "hotpkg", 3)
    assert found.commit is not None
    assert found.commit.version == "1.2"
    assert found.step is not None
    assert found.step.value == pytest.approx(1.3, rel=0.15)
    assert found.changed == (ChangedPackage("hotpkg", "1.1", "1.2"),)


@pytest.mark.timeout(1800)
def test_a_slow_release_beneath_a_model_is_named(tmp_path: Path) -> None:
    variables = offline_variables(tmp_path / "needs", *framework_named("torch").packages)
    work = tmp_path / "work"
    work.mkdir()
    (work / "net.py").write_text(NET.format(steps=2))
    write_releases(tmp_path / "wheels", VERSIONS[:2], slow_from="1.1", steps=STEPS)
    variables["PIP_FIND_LINKS"] += f" {tmp_path / 'wheels'}"
    found = answer(
        bisect(
            work, tmp_path / "cache", variables,
            "net:build", "--on", "torch", "--releases", "hotpkg", "--good", "1.0", "--bad", "1.1", "--blocks", "12",
        )
    )  # fmt: skip
    assert found.outcome == "found"
    assert found.commit is not None
    assert found.commit.version == "1.1"
    assert found.step is not None
    assert found.step.value == pytest.approx(1.3, rel=0.15)


@pytest.mark.timeout(1800)
def test_a_commit_that_made_a_model_of_its_repository_slower_is_named(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    (repository / "src/mypkg").mkdir(parents=True)
    git(repository, "init", "--quiet")
    hashes = []
    for number in range(5):
        (repository / "src/mypkg/net.py").write_text(
            NET.format(steps=13 if number >= 3 else 10).replace("from hotpkg import fn", "from mypkg.hot import fn")
        )
        (repository / "src/mypkg/hot.py").write_text(f"# {number}\ndef fn():\n    return sum(range(500))\n")
        git(repository, "add", ".")
        git(repository, "commit", "--quiet", "-m", f"change {number}")
        hashes.append(git(repository, "rev-parse", "HEAD"))
    (repository / "src/mypkg/net.py").write_text("raise SystemExit('what is not committed does not race')\n")
    found = answer(
        bisect(
            repository, tmp_path / "cache", {}, "mypkg.net:build", "--on", "torch", "--good", hashes[0], "--bad", "HEAD"
        )
    )
    assert found.outcome == "found"
    assert found.commit is not None
    assert found.commit.commit == hashes[3]
    assert found.step is not None
    assert found.step.value == pytest.approx(1.3, rel=0.15)
    assert not list((tmp_path / "cache").rglob("net.py"))
