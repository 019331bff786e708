"""Packages of contestants from files, folders and commits: what is pinned by content, and refused in one line."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from command_line import refusal
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.launch import runners
from fairlap.launch.environments import Environment, key_of
from fairlap.launch.packages import interpreters
from fairlap.launch.packages.interpreters import Interpreter, interpreter_named
from fairlap.launch.packages.making import lay_on, making_of
from fairlap.launch.packages.origins import why_not_for, with_pinned_origins, with_wheel_here
from fairlap.launch.runners import runners_for
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.planning.plan_modules import modules_of, require_not_hidden
from fairlap.race.planning.plan_reach import reach_of
from fairlap.request.commands import Command, command_in
from fairlap.request.fields.package_origin import origin_of
from fairlap.request.fields.source import Source
from fairlap.request.names import ContestantName, Contestants, contestant_named
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import Work
from histories_of_commits import git
from wheels import write_source, write_wheel

HERE = Interpreter("python", (3, 11, 7), "/usr")
CALL = "python:call=hotpkg.fn"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def pinned(text: str) -> ContestantName:
    [name] = with_pinned_origins([contestant_named(text)])
    return name


def code_of(text: str) -> str:
    with pytest.raises(FairlapError) as caught:
        pinned(text)
    assert "\n" not in str(caught.value)
    return caught.value.code


def key(text: str) -> str:
    name = pinned(text)
    return key_of((name.release,) if name.release else (), making_of(name.options))


def repository(folder: Path) -> tuple[Path, str, str]:
    """Make one with a fast commit and a slow one, which is checked out."""
    write_source(folder, steps=100)
    git(folder, "init", "--quiet", "--initial-branch=main")
    hashes = []
    for steps in (100, 200):
        (folder / "steps").write_text(f"{steps}\n")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", f"{steps} steps")
        hashes.append(git(folder, "rev-parse", "HEAD"))
    return folder, hashes[0], hashes[1]


def test_a_wheel_is_pinned_by_the_hash_of_its_bytes_wherever_it_is(folder: Path) -> None:
    wheel = write_wheel(folder / "dist", "hotpkg", "1.0", {"hotpkg.py": "x = 1\n"})
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    name = pinned(f"torch@./dist/{wheel.name}")
    assert (name.framework, name.text) == ("torch", f"torch@./dist/{wheel.name}")
    assert name.release == f"hotpkg @ file://{wheel}#sha256={digest}"
    assert name.framework_options == {}
    assert origin_of(name.options) == {
        "package": "hotpkg", "version": "1.0", "wheel": wheel.name, "sha256": digest,
    }  # fmt: skip
    copy = folder / "other" / wheel.name
    copy.parent.mkdir()
    copy.write_bytes(wheel.read_bytes())
    assert key(f"{CALL}:with=./dist/{wheel.name}") == key(f"{CALL}:with={copy}")
    write_wheel(folder / "other", "hotpkg", "1.0", {"hotpkg.py": "x = 2\n"})
    assert key(f"{CALL}:with=./dist/{wheel.name}") != key(f"{CALL}:with={copy}")
    copy.unlink()
    (folder / wheel.name).write_bytes(wheel.read_bytes())
    wheel.unlink()
    assert with_wheel_here(name).release == f"hotpkg @ file://{folder / wheel.name}#sha256={digest}"


def test_a_source_folder_is_pinned_by_its_files_and_flags_make_another_environment(folder: Path) -> None:
    write_source(folder / "here", steps=100)
    write_source(folder / "there", steps=100)
    name = pinned(f"{CALL}:with=./here:build=HOT_STEPS=5:build=CFLAGS=-O3")
    found = origin_of(name.options)
    assert (found["package"], found["folder"]) == ("hotpkg", str(folder / "here"))
    assert found["build"] == "CFLAGS=-O3 HOT_STEPS=5"
    assert len(found["tree"]) == 64
    plain = key(f"{CALL}:with=./here")
    assert key(f"{CALL}:with=./there") == plain
    assert key(f"{CALL}:with=./here:build=HOT_STEPS=5") != plain
    (folder / "there/.git").mkdir()
    (folder / "there/__pycache__").mkdir()
    (folder / "there/__pycache__/x.pyc").touch()
    assert key(f"{CALL}:with=./there") == plain
    (folder / "there/steps").write_text("200\n")
    assert key(f"{CALL}:with=./there") != plain


def test_a_commit_is_pinned_by_its_whole_name_also_after_a_branch_moved(folder: Path) -> None:
    source, fast, slow = repository(folder / "repository")
    before = git(source, "status", "--porcelain=v2", "--branch")
    url = f"git+file://{source}"
    for revision, commit in ((fast, fast), ("HEAD~1", fast), ("HEAD", slow), ("main", slow), (slow[:9], slow)):
        assert pinned(f"torch@{url}@{revision}").release == f"hotpkg @ {url}@{commit}"
    assert origin_of(pinned(f"torch@{url}@{fast}").options)["commit"] == fast
    git(source, "checkout", "--quiet", "-b", "other", fast)
    (source / "steps").write_text("300\n")
    git(source, "commit", "--quiet", "--all", "-m", "another")
    moved = git(source, "rev-parse", "HEAD")
    assert pinned(f"torch@{url}@HEAD").release == f"hotpkg @ {url}@{moved}"
    assert pinned(f"torch@{url}@main").release == f"hotpkg @ {url}@{slow}"
    git(source, "checkout", "--quiet", "main")
    assert git(source, "status", "--porcelain=v2", "--branch") == before
    assert key(f"torch@{url}@{fast}") != key(f"torch@{url}@{slow}")


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("a-1-py3-none-any.whl", True), ("a-1-py2.py3-none-any.whl", True), ("a-1-py2-none-any.whl", False),
        ("torch-2.14.dev20261101+cpu-cp311-cp311-manylinux_2_28_{machine}.whl", True),
        ("a-1-2build-cp311-cp311-linux_{machine}.whl", True), ("a-1-cp311-abi3-linux_{machine}.whl", True),
        ("a-1-cp39-abi3-manylinux2014_{machine}.manylinux_2_17_{machine}.whl", True),
        ("a-1-py311-none-any.whl", True), ("a-1-py39-none-linux_{machine}.whl", True),
        ("a-1-cp312-cp312-linux_{machine}.whl", False), ("a-1-cp312-abi3-linux_{machine}.whl", False),
        ("a-1-cp310-cp310-linux_{machine}.whl", False), ("a-1-cp311-cp311t-linux_{machine}.whl", False),
        ("a-1-cp310-none-any.whl", False), ("a-1-pp311-pypy311_pp73-linux_{machine}.whl", False),
        ("a-1-cp311-cp311-win_amd64.whl", False), ("a-1-cp311-cp311-macosx_11_0_arm64.whl", False),
        ("a-1-cp311-cp311-manylinux_2_28_ppc64le.whl", False), ("a-1.whl", False), ("evil.whl", False),
    ],
)  # fmt: skip
def test_a_wheel_is_for_this_python_by_the_tags_of_pep_425(
    name: str, runs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert (why_not_for(name.format(machine="x86_64"), HERE) == "") is runs


@pytest.mark.slow
def test_the_tags_agree_with_pip_s_own() -> None:
    tags = subprocess.run(
        [sys.executable, "-m", "pip", "debug", "--verbose"], capture_output=True, text=True, timeout=60
    ).stdout.split("Compatible tags:")[1].split()[1:]  # fmt: skip
    found = [each for each in tags if each.count("-") == 2]
    assert len(found) > 10
    assert [each for each in found if why_not_for(f"a-1-{each}.whl", interpreter_named(""))] == []


def test_what_cannot_be_installed_is_refused_with_its_code_before_anything_is_made(folder: Path) -> None:
    write_wheel(folder, "hotpkg", "1.0", {}, tag="cp27-cp27m-linux_x86_64")
    (folder / "package.whl").mkdir()
    (folder / "notes.txt").touch()
    (folder / "bare").mkdir()
    for text in ("./absent-1.0-py3-none-any.whl", "./hotpkg-1.0-cp27-cp27m-linux_x86_64.whl", "./notes.txt", "./no"):
        assert code_of(f"torch@{text}" if text != "./no" else f"{CALL}:with=./no") == "E_WHEEL"
    assert code_of("torch==2.13.0:find_links=./absent") == "E_WHEEL"
    assert code_of(f"{CALL}:with=./bare") == "E_BUILD"
    (folder / "bare/pyproject.toml").write_text("[project\n")
    assert code_of(f"{CALL}:with=./bare") == "E_BUILD"
    (folder / "bare/pyproject.toml").write_text("[build-system]\nrequires = []\n")
    assert code_of(f"{CALL}:with=./bare") == "E_BUILD"  # without a name
    (folder / "bare/setup.cfg").write_text("[metadata]\nname = older\n")
    assert pinned(f"{CALL}:with=./bare").release.startswith("older @ file://")
    source, *_ = repository(folder / "repository")
    for commit in (f"git+file://{source}@{'0' * 40}", f"git+file://{source}@nothing", f"git+file://{folder}/no@HEAD"):
        assert code_of(f"torch@{commit}") == "E_BUILD"
    git(source, "rm", "--quiet", "pyproject.toml")
    git(source, "commit", "--quiet", "-m", "without a project")
    assert code_of(f"torch@git+file://{source}@main") == "E_BUILD"
    assert refusal("compare", "callable", "--on", f"{CALL}:with=./no.whl", "--dry-run").code == "E_WHEEL"
    assert refusal("compare", "callable", "--on", f"{CALL}:with=./repository", "--dry-run").code == "E_BUILD"


@pytest.mark.parametrize(
    "text",
    [
        "torch:with=-e", "torch:with=git+ssh://host", "torch:with=git+file:///r@--upload-pack=x", "torch:python=3",
        "torch:python=--version", "torch==1:index=--config-settings", "torch==1:find_links=-r",
        "torch:index=http://h/s",
        "torch:build=CFLAGS=-O3", "torch==2.13.0:build=CFLAGS=-O3", "torch:with=numpy==2.1.0:build=X=1",
        "torch:with=numpy==2.1.0:build=no-name", "./worker:with=./x.whl", "http://127.0.0.1:80/x:with=numpy==2.1.0",
    ],
)  # fmt: skip
def test_what_is_not_of_the_forms_or_belongs_to_nothing_is_refused(text: str) -> None:
    assert code_of(text) == "E_CONTESTANT"


def test_options_of_a_worker_program_stay_its_own() -> None:
    assert contestant_named("./worker:build=release:python=any").framework_options == {
        "build": "release", "python": "any",
    }  # fmt: skip
    assert contestant_named("people@home/worker").program == "people@home/worker"


def fake_python(folder: Path, said: str) -> Path:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\necho '{said}'\n")
    path.chmod(0o755)
    interpreters._answer_of.cache_clear()
    return path


def answer(version: list[int], implementation: str, *, makes: int) -> str:
    return json.dumps({
        "version": version, "implementation": implementation, "prefix": ["/", "/"], "sites": [],
        "makes_environments": makes,
    })  # fmt: skip


@pytest.mark.parametrize(
    "said",
    [
        answer([3, 9, 18], "cpython", makes=1),
        answer([2, 7, 18], "cpython", makes=1),
        answer([3, 11, 1], "pypy", makes=1),
        answer([3, 12, 1], "cpython", makes=0),
        "no interpreter",
    ],
)
def test_an_interpreter_that_is_too_old_or_without_pip_is_refused(said: str, folder: Path) -> None:
    assert code_of(f"torch:python={fake_python(folder, said)}") == "E_INTERPRETER"


def test_a_free_threaded_python_is_another_one_than_that_of_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs stand in for both, which answer what these would answer."""
    said = json.loads(answer([3, 14, 2], "cpython", makes=1))
    for name, free_threaded in (("python3.14", False), ("python3.14t", True), ("python3.15", True)):
        program = fake_python(tmp_path, json.dumps({**said, "free_threaded": free_threaded}))
        program.rename(tmp_path / name)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    plain, free = interpreter_named("3.14"), interpreter_named("3.14.2t")
    assert [(Path(each.path).name, each.name, each.folder) for each in (plain, free)] == [
        ("python3.14", "3.14.2", "python3.14"), ("python3.14t", "3.14.2t", "python3.14t"),
    ]  # fmt: skip
    assert not free.is_alike
    for text in ("3.15", "3.13t"):
        assert code_of(f"torch:python={text}") == "E_INTERPRETER"
    for name, runs_in in (
        ("a-1-cp314-cp314t-linux_x86_64.whl", free), ("a-1-cp314-cp314-linux_x86_64.whl", plain),
        ("a-1-cp311-abi3-linux_x86_64.whl", plain),
    ):  # fmt: skip
        assert [why_not_for(name, each) == "" for each in (plain, free)] == [runs_in is plain, runs_in is free]
    made = [making_of(contestant_named(f"torch:python={text}").options) for text in ("3.14", "3.14t")]
    assert [each.variables for each in made] == [{}, {"PYTHON_GIL": "0"}]
    assert len({key_of(("torch",), each) for each in made}) == 2


def test_an_interpreter_that_is_not_here_is_refused_and_this_one_is_found(folder: Path) -> None:
    for text in ("./no", "./", "3.99", "3.9"):
        assert code_of(f"torch:python={text}") == "E_INTERPRETER"
    found = interpreter_named(sys.executable)
    assert found.version == sys.version_info[:3]
    assert found.sites
    assert key(f"{CALL}:python={sys.executable}") != key(CALL)
    assert pinned(f"{CALL}:python={sys.executable}").is_apart


def test_an_environment_is_named_by_its_folder_and_that_of_conda_sets_its_variable(folder: Path) -> None:
    """A virtual environment stands in for conda's, but for the folder by which conda knows its own."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    by_folder, by_file = (pinned(f"{CALL}:python={each}") for each in ("./env", "./env/bin/python"))
    assert origin_of(by_folder.options) == origin_of(by_file.options) == {"python": f"{folder}/env/bin/python"}
    assert making_of(by_folder.options).variables == {"PYTHONDONTWRITEBYTECODE": "1"}
    (folder / "env/conda-meta").mkdir()
    assert making_of(by_folder.options).variables["CONDA_PREFIX"] == f"{folder}/env"
    assert key(f"{CALL}:python=./env") == key(f"{CALL}:python=./env/bin/python")


@pytest.mark.parametrize(("installed", "code"), [("torch", ""), ("torchvision", "E_NOT_INSTALLED")])
def test_an_environment_that_lacks_the_framework_is_the_outcome_of_its_contestant(
    folder: Path, monkeypatch: pytest.MonkeyPatch, installed: str, code: str
) -> None:
    """Laid on the user's environment, as a race makes it, without what pip would install."""
    for place in ("env", "laid"):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    [beneath] = Path("env").glob("lib/python*/site-packages")
    (beneath / f"{installed}.py").write_text("raise RuntimeError('it is not imported to find it')\n")
    [site] = Path("laid").glob("lib/python*/site-packages")
    name = pinned("torch:python=./env")
    lay_on(site, interpreter_named(name.python))

    @contextmanager
    def made(*_: object) -> Iterator[Environment]:
        yield Environment("laid", folder / "laid", (), "now")

    monkeypatch.setattr(runners, "environment_with", made)
    with ExitStack() as stack:
        [runner] = runners_for((name,), 1, "cpu", folder, stack, lambda _: None)
    if code:
        assert runner.missing is not None
        assert runner.missing.code == code
        assert f"{name.python} -m pip install torch" in str(runner.missing)
    else:
        assert runner.missing is None


def test_a_package_index_is_part_of_the_key_and_its_password_of_nothing_that_is_shown() -> None:
    text = "torch==2.14.0.dev20261101:index=https://user:secret@host:8443/nightly/cpu"
    name = pinned(text)
    assert (name.version, name.variant) == ("==2.14.0.dev20261101", "")
    assert dict(name.options)["index"] == "https://user:secret@host:8443/nightly/cpu"
    assert "secret" not in f"{name.text} {origin_of(name.options)} {making_of(name.options).shown}"
    assert key_of(("torch==2",), making_of(name.options)) != key_of(("torch==2",))


def test_a_plan_lists_what_it_builds_and_in_what_it_runs(folder: Path) -> None:
    write_source(folder / "here", steps=100)
    text = f"{CALL}:with=./here:build=CFLAGS=-O3:python={sys.executable}"
    plan = plan_of(RaceRequest(models=("callable",), contestants=Contestants(text), blocks=1, threads=1))
    lines = reach_of(plan)
    assert [each for each in lines if each.startswith(f"package hotpkg @ file://{folder}/here#tree=")]
    assert [each for each in lines if "build=CFLAGS=-O3" in each]
    assert [each for each in lines if f"python={sys.executable}" in each]


def test_code_of_the_current_folder_is_not_taken_for_that_of_the_package(folder: Path) -> None:
    write_wheel(folder / "dist", "hotpkg", "1.0", {"hotpkg.py": "def fn(): ...\n"})
    (folder / "hotpkg.py").write_text("def fn(): ...\n")
    wheel = "./dist/hotpkg-1.0-py3-none-any.whl"
    assert modules_of([pinned(f"{CALL}:with={wheel}")], []) == ()
    assert [each.name for each in modules_of([contestant_named(CALL)], [])] == ["hotpkg"]
    own_model = Work("net", 1, source=Source("net:build", "net:build", str(folder)))
    with pytest.raises(InvalidRequest) as caught:
        require_not_hidden([pinned(f"torch:with={wheel}")], [own_model])
    assert caught.value.code == "E_CONTESTANT"
    require_not_hidden([pinned(f"torch:with={wheel}")], [Work("mlp", 1)])
    error = refusal(
        "compare", "callable", "--on", f"{CALL}:with={wheel},python:call=os.getcwd", "--inputs", "a:b", "--dry-run"
    )
    assert error.code == "E_REFERENCE"


def test_a_command_is_given_a_wheel_or_commit_in_the_place_of_its_folder() -> None:
    assert command_in("new@./dist/a-1-py3-none-any.whl=python bench.py --x=1") == (
        "new", Command("python bench.py --x=1", package="./dist/a-1-py3-none-any.whl"),
    )  # fmt: skip
    assert command_in("old@git+file:///r@v1=bench")[1].package == "git+file:///r@v1"
    assert command_in("old@../base=./bench")[1] == Command("./bench", "../base")
