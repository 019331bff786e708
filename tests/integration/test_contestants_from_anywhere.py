"""Races of packages from wheels, folders, commits and other environments, against a loop by hand; without a network."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import sysconfig
import time
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

import pytest
from fairlap.frameworks.registry import framework_named
from fairlap.machine.files.folder_hash import folder_hash
from histories_of_commits import SOURCE, git
from wheels import offline_variables, write_source, write_wheel

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

FAST, SLOW = 2_000, 4_000
CALL = "python:call=hotpkg.fn"
RACE = ("--conditions", "as-found", "--threads", "1", "--seconds", "100ms", "--blocks", "8", "--json", "-q")


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "work").mkdir()
    return {
        **offline_variables(tmp_path / "needs"),
        "FAIRLAP_CACHE": str(tmp_path / "cache"),
        "FAIRLAP_ENVS": str(tmp_path / "envs"),
        "FAIRLAP_STORE": str(tmp_path / "runs.sqlite"),
        "XDG_DATA_HOME": str(tmp_path / "data"),
    }


def fairlap(folder: Path, variables: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fairlap", *arguments]
    return subprocess.run(command, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True)


def rows(folder: Path, variables: dict[str, str], *on: str) -> dict[str, dict[str, Any]]:
    done = fairlap(
        folder, variables, "compare", "callable", "--on", ",".join(on), "--baseline", on[0], *RACE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = {row["contestant"]: row for row in json.loads(done.stdout)["rows"]}
    assert {row["outcome"] for row in found.values()} == {"finished"}, done.stdout
    return found


def installed_here() -> list[tuple[str, int]]:
    """List what is in the environment of the user, with sizes but of bytecode, which any import may write."""
    files = (path for path in sorted(Path(sysconfig.get_path("purelib")).rglob("*")) if path.suffix != ".pyc")
    return [(str(path), path.lstat().st_size) for path in files if not path.is_dir()]


def ratio_by_hand() -> float:
    """Time both callables in turns, in this process."""
    found: dict[int, list[float]] = {FAST: [], SLOW: []}
    called = {}
    for steps in found:
        own: dict[str, Any] = {}
        exec(SOURCE.format(number=1, steps=steps), own)
        called[steps] = own["fn"]
    for _ in range(400):
        for steps, times in found.items():
            began = time.perf_counter()
            called[steps]()
            times.append(time.perf_counter() - began)
    return statistics.median(found[SLOW]) / statistics.median(found[FAST])


def test_two_wheels_race_with_the_ratio_of_a_loop_by_hand_in_their_own_repository(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    work = tmp_path / "work"
    for version, steps in (("1.0", FAST), ("2.0", SLOW)):
        write_wheel(work / "dist", "hotpkg", version, {"hotpkg.py": SOURCE.format(number=1, steps=steps)})
    (work / "hotpkg.py").write_text("raise SystemExit('what is installed comes before the current folder')\n")
    names = [f"{CALL}:with=./dist/hotpkg-{version}-py3-none-any.whl" for version in ("1.0", "2.0")]
    before = installed_here()
    fast, slow = (rows(work, variables, *names)[name] for name in names)
    assert slow["verdict"] == "slower"
    assert slow["ratio"]["value"] == pytest.approx(ratio_by_hand(), rel=0.1)
    assert [row["origin"]["version"] for row in (fast, slow)] == ["1.0", "2.0"]
    assert fast["origin"]["sha256"] != slow["origin"]["sha256"]
    assert all(f"{tmp_path}/envs/" in row["settings"]["file"] for row in (fast, slow))
    assert installed_here() == before
    listed = json.loads(fairlap(work, variables, "envs", "--json").stdout)
    assert [each["state"] for each in listed["environments"]] == ["complete", "complete"]

    bundle = fairlap(work, variables, "bundle", "last", "-o", "race.fairlap", "--no-page")
    assert bundle.returncode == 0, bundle.stderr
    again = fairlap(work, variables, "rerun", "race.fairlap", "--recheck", "--trust", "--json", "-q")
    assert again.returncode == 0, again.stderr
    found = json.loads(again.stdout)
    assert (found["schema"], found["holds"], found["flips"], found["undecided"]) == ("fairlap.recheck/1", 1, 0, 0)
    assert fairlap(work, variables, "envs", "prune", "--days", "0").returncode == 0
    assert json.loads(fairlap(work, variables, "envs", "--json").stdout)["environments"] == []


def test_a_folder_two_commits_and_two_builds_of_one_commit_race(tmp_path: Path, variables: dict[str, str]) -> None:
    work = tmp_path / "work"
    repository = write_source(tmp_path / "repository", steps=FAST)
    git(repository, "init", "--quiet", "--initial-branch=main")
    commits = []
    for steps in (FAST, SLOW):
        (repository / "steps").write_text(f"{steps}\n")
        git(repository, "add", ".")
        git(repository, "commit", "--quiet", "-m", f"{steps} steps")
        commits.append(git(repository, "rev-parse", "HEAD"))
    write_source(work / "here", steps=SLOW)
    url = f"git+file://{repository}"
    names = [
        f"{CALL}:with={url}@{commits[0]}",
        f"{CALL}:with={url}@main",
        f"{CALL}:with={url}@main:build=HOT_STEPS={FAST}",
        f"{CALL}:with=./here",
    ]
    before = folder_hash(work / "here"), sorted((work / "here").iterdir())
    found = rows(work, variables, *names)
    by_hand = ratio_by_hand()
    assert found[names[1]]["ratio"]["value"] == pytest.approx(by_hand, rel=0.1)
    assert found[names[2]]["ratio"]["value"] == pytest.approx(1.0, rel=0.1)
    assert found[names[3]]["ratio"]["value"] == pytest.approx(by_hand, rel=0.1)
    assert [found[name]["origin"].get("commit") for name in names] == [commits[0], commits[1], commits[1], None]
    assert found[names[2]]["origin"]["build"] == f"HOT_STEPS={FAST}"
    assert len(found[names[3]]["origin"]["tree"]) == 64
    assert (folder_hash(work / "here"), sorted((work / "here").iterdir())) == before
    listed = json.loads(fairlap(work, variables, "envs", "--json").stdout)
    assert (len(listed["environments"]), len(listed["wheels"])) == (4, 4)


def test_an_environment_of_the_user_is_raced_as_it_is_and_never_written_to(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    work = tmp_path / "work"
    pythons = []
    for name, steps in (("fast", FAST), ("slow", SLOW)):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", work / name], check=True)
        [site] = (work / name).glob("lib/python*/site-packages")
        (site / "hotpkg.py").write_text(SOURCE.format(number=1, steps=steps))
        pythons.append(f"./{name}/bin/python")
    (work / "slow/conda-meta").mkdir()  # as conda's environments have, which are named by their folder
    pythons[1] = "./slow"
    names = [f"{CALL}:python={each}" for each in pythons]
    files = [(path, path.stat().st_mtime_ns) for path in sorted(work.rglob("*"))]
    found = rows(work, variables, *names)
    assert found[names[1]]["ratio"]["value"] == pytest.approx(ratio_by_hand(), rel=0.1)
    assert found[names[1]]["origin"] == {"python": str(work / "slow/bin/python")}
    assert str(work / "slow") in found[names[1]]["settings"]["file"]
    assert [(path, path.stat().st_mtime_ns) for path in sorted(work.rglob("*"))] == files


def test_a_command_finds_the_python_and_the_programs_of_its_wheel(tmp_path: Path, variables: dict[str, str]) -> None:
    work = tmp_path / "work"
    code = "import time\n\ndef main():\n    time.sleep({pause})\n"
    for version, pause in (("1.0", 0.05), ("2.0", 0.25)):
        script = "[console_scripts]\nhotprogram = hotpkg:main\n"
        files = {"hotpkg.py": code.format(pause=pause), f"hotpkg-{version}.dist-info/entry_points.txt": script}
        write_wheel(work, "hotpkg", version, files)
    commands = [f"--command=v{version[0]}@./hotpkg-{version}-py3-none-any.whl=hotprogram" for version in ("1.0", "2.0")]
    options = (*RACE[:6], "--blocks", "6", "--json", "-q")
    done = fairlap(work, variables, "compare", *commands, "--baseline", "v1", *options)
    assert done.returncode == 0, done.stderr
    found = {row["contestant"]: row for row in json.loads(done.stdout)["rows"]}
    assert found["v2"]["verdict"] == "slower"
    difference_ns = found["v2"]["judged"]["value"] - found["v1"]["judged"]["value"]
    assert difference_ns == pytest.approx(0.2e9, rel=0.2)
    assert found["v2"]["origin"]["version"] == "2.0"


def test_a_source_that_does_not_build_is_the_outcome_of_its_contestant_alone(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    work = tmp_path / "work"
    write_source(work / "broken", steps=-1)
    names = ["python:call=os.getpid", f"{CALL}:with=./broken"]
    done = fairlap(work, variables, "compare", "callable", "--on", ",".join(names), *RACE)
    assert done.returncode == 0, done.stderr
    found = {row["contestant"]: row for row in json.loads(done.stdout)["rows"]}
    assert [found[name]["code"] for name in names] == ["", "E_BUILD"]
    assert "cannot take -1 steps" in found[names[1]]["message"]
    listed = json.loads(fairlap(work, variables, "envs", "--json").stdout)
    assert (listed["environments"], listed["wheels"]) == ([], [])


def test_nightly_builds_come_from_an_index_or_a_folder_beside_those_of_pip_s_settings(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    work, simple = tmp_path / "work", tmp_path / "simple/hotpkg"
    wheels = {
        steps: write_wheel(folder, "hotpkg", "3.0.dev20261101", {"hotpkg.py": SOURCE.format(number=1, steps=steps)})
        for folder, steps in ((simple, FAST), (work / "nightly", SLOW))
    }
    (simple / "index.html").write_text(f"<a href='{wheels[FAST].name}'>{wheels[FAST].name}</a>\n")
    (tmp_path / "empty").mkdir()
    variables = {**variables, "PIP_NO_INDEX": "0", "PIP_INDEX_URL": (tmp_path / "empty").as_uri()}
    release = f"{CALL}:with=hotpkg==3.0.dev20261101"
    names = [f"{release}:index={simple.parent.as_uri()}", f"{release}:find_links=./nightly"]
    found = rows(work, variables, *names)
    assert found[names[1]]["ratio"]["value"] == pytest.approx(ratio_by_hand(), rel=0.1)
    assert found[names[0]]["origin"]["index"] == simple.parent.as_uri()
    assert found[names[1]]["origin"]["find_links"] == str(work / "nightly")


def test_a_wheel_of_a_framework_takes_its_place(tmp_path: Path, variables: dict[str, str]) -> None:
    work = tmp_path / "work"
    offline_variables(tmp_path / "needs", *framework_named("torch").packages)
    here = {"torch_from_here.pth": f"{sysconfig.get_path('purelib')}\n"}
    wheel = write_wheel(work, "torch", "9.9", here)
    options = (*RACE[:6], "--blocks", "1", "--json", "-q")
    done = fairlap(work, variables, "compare", "mlp", "--on", f"torch@./{wheel.name}", *options)
    assert done.returncode == 0, done.stderr
    [row] = json.loads(done.stdout)["rows"]
    assert (row["outcome"], row["framework"], row["version"]) == ("finished", "torch", installed_version("torch"))
    assert (row["origin"]["package"], row["origin"]["version"]) == ("torch", "9.9")
    [made] = json.loads(fairlap(work, variables, "envs", "--json").stdout)["environments"]
    assert any("torch-9.9-py3-none-any.whl" in each for each in made["requirements"])
