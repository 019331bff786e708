"""A recipe holds what ran, and nothing that a file says gets further than it should."""

from __future__ import annotations

import csv
import re
import shlex
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from command_line import output, refusal
from fairlap.errors import InvalidRequest, NotWritten
from fairlap.race.planning.plan_file import load_plan
from fairlap.race.run import Run
from fairlap.render.recipe import own_models, write_recipe
from fairlap.request.fields.data.training_data import TrainingData
from fairlap.request.fields.source import Source
from fairlap.store.runs.run_file import load_run, save_run
from runs_for_rows import a_run

_MACHINE = {
    "python": "cpython 3.12.4",
    "distribution": "Debian GNU/Linux 12 (bookworm)",
    "memory": "16 GiB",
    "package torch": "2.13.0+cpu",
    "package numpy": "2.4.6",
    "package jax": "0.10.2",
    "package jaxlib": "0.10.2",
    "variable OMP_NUM_THREADS": "2",
}
_FILES = ("Dockerfile", "README.md", "plan.json", "requirements.txt")
_KNOWN = {"FROM", "RUN", "WORKDIR", "COPY", "ARG", "ENV", "CMD"}


def run_of(*contestants: str, versions: dict[str, str] | None = None, **machine: str) -> Run:
    """Make a run; a contestant that is not in ``versions`` did not report its version."""
    run = a_run(blocks=3, listed=",".join(contestants))
    for process in run.processes:
        process.version = (versions or {}).get(process.contestant, "")
    run.machine = _MACHINE | {name.replace("__", " "): value for name, value in machine.items()}
    return run


def recipe(folder: Path, run: Run) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in write_recipe(run, folder)}


def instructions(dockerfile: str) -> list[tuple[str, str]]:
    """As Docker reads them: comments out, an instruction on each line."""
    lines = [line for line in dockerfile.splitlines() if line and not line.startswith("#")]
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines]


def variables(dockerfile: str) -> dict[str, str]:
    """As Docker would set them: quotes off, escapes undone."""
    found = {}
    for name, rest in instructions(dockerfile):
        if name == "ENV":
            variable, value = rest.split("=", 1)
            inside = re.fullmatch(r'"((?:[^"\\]|\\.)*)"', value)
            found[variable] = re.sub(r"\\(.)", r"\1", inside.group(1)) if inside else value
    return found


def requirements(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_the_container_has_the_interpreter_the_versions_and_the_plan(tmp_path: Path) -> None:
    run = run_of("torch", "jax", versions={"torch": "2.13.0+cpu", "jax": "0.10.2"})
    written = recipe(tmp_path / "again", run)
    lines = instructions(written["Dockerfile"])
    assert {name for name, _ in lines} <= _KNOWN
    assert lines[0] == ("FROM", "python:3.12.4-slim-bookworm")
    assert lines[-1] == ("CMD", '["fairlap", "compare", "--plan", "plan.json", "-o", "/out/run.json"]')
    copied = {file for name, rest in lines if name == "COPY" for file in rest.split()[:-1]}
    assert all((tmp_path / "again" / file).exists() for file in copied)
    pinned = [f"fairlap=={run.fairlap}", "jax==0.10.2", "optax==0.2.8", "torch==2.13.0"]
    assert requirements(written["requirements.txt"]) == pinned
    assert requirements(written["constraints.txt"]) == ["jaxlib==0.10.2", "numpy==2.4.6"]
    assert load_plan(tmp_path / "again/plan.json") == run.plan
    assert load_run(tmp_path / "again/recorded.json").plan == run.plan


def test_the_page_has_the_one_command_and_says_what_is_missing(tmp_path: Path) -> None:
    run = run_of("torch", "./my-worker", versions={"torch": "2.13.0+cpu"}, variable__LD_PRELOAD="/usr/lib/x.so")
    page = recipe(tmp_path, run)["README.md"]
    cores = ",".join(sorted({str(core) for block in run.plan.blocks for core in block.cores}))
    assert f"docker build --tag fairlap-again . && docker run --rm --cpuset-cpus {cores} " in page
    for each in ("torch 2.13.0+cpu", "my-worker", "LD_PRELOAD", "fairlap diff recorded.json out/run.json"):
        assert each in page


def fed_run(data: str, *hashes: str) -> Run:
    run = run_of("torch")
    run.plan = msgspec.structs.replace(run.plan, data=data)
    for number, process in enumerate(run.processes):
        if hashes:
            process.in_force["data_hash"] = hashes[number % len(hashes)]
    return run


def docker_run(page: str) -> list[str]:
    [line] = [line for line in page.splitlines() if "docker run" in line]
    return shlex.split(line.partition(" && ")[2])


@pytest.mark.parametrize("data", ["/data/race.npy", "/my data/$HOME/it's; rm x", '/a,b/c:d/"e"', "/`x`/```"])
def test_a_users_data_is_mounted_for_reading_at_its_path_and_named_with_its_hash(tmp_path: Path, data: str) -> None:
    page = recipe(tmp_path, fed_run(data, "0123456789ab"))["README.md"]
    words = docker_run(page)
    [fields] = csv.reader([words[words.index("--mount") + 1]])
    assert fields == ["type=bind", f"source={data}", f"target={data}", "readonly"]
    assert words[-1] == "fairlap-again"
    [remark] = [line for line in page.partition("## What is not included")[2].splitlines() if "data" in line]
    assert f"copy `{' '.join(data.replace('`', ' ').split())}` (hash `0123456789ab`) to the same path" in remark
    assert load_plan(tmp_path / "plan.json").data == data


def test_the_data_that_a_work_learnt_is_brought_and_a_built_in_set_is_not(tmp_path: Path) -> None:
    run = run_of("torch")
    [work] = run.plan.works
    for name, data in {
        "own": TrainingData("pets.csv", "/data/pets.csv", hash="0123456789ab"),
        "built-in": TrainingData("diabetes", hash="0123456789ab"),
    }.items():
        run.plan = msgspec.structs.replace(run.plan, works=(msgspec.structs.replace(work, train_on=data),))
        page = recipe(tmp_path / name, run)["README.md"]
        assert ("--mount" in docker_run(page)) == bool(data.path)
        assert ("copy `/data/pets.csv` (hash `0123456789ab`) to the same path" in page) == bool(data.path)


def test_data_of_which_no_process_kept_a_hash_is_named_without(tmp_path: Path) -> None:
    assert "copy `/data/race.npy` to the same path" in recipe(tmp_path, fed_run("/data/race.npy"))["README.md"]


@pytest.mark.parametrize("data", ["", "synthetic"])
def test_nothing_is_brought_for_a_race_that_was_fed_nothing_or_what_is_drawn_again(tmp_path: Path, data: str) -> None:
    page = recipe(tmp_path, fed_run(data, "0123456789ab"))["README.md"]
    assert "--mount" not in docker_run(page)
    assert page.startswith(f"# Repeat of `mlp · infer · fp32 · batch 4{' · fed synthetic' if data else ''}`")
    assert "The data" not in page


@pytest.mark.parametrize("data", ["race.npy", "/a\n```\nrm x", "/\x1b[2J"])
def test_data_that_is_no_path_from_the_root_on_gets_no_recipe(tmp_path: Path, data: str) -> None:
    with pytest.raises(InvalidRequest, match="path"):
        write_recipe(fed_run(data), tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_no_package_index_is_named_anywhere(tmp_path: Path) -> None:
    for text in recipe(tmp_path, run_of("torch", "jax")).values():
        assert re.search(r"https?://|index-url [^.]", text) is None


def test_what_ran_most_often_is_what_is_pinned(tmp_path: Path) -> None:
    run = run_of("torch", versions={"torch": "2.12.0"})  # another one than is installed now
    assert "torch==2.12.0" in requirements(recipe(tmp_path, run)["requirements.txt"])


def test_a_contestant_of_another_environment_is_pinned_there(tmp_path: Path) -> None:
    run = run_of("tinygrad", "jax", versions={"tinygrad": "0.14.0", "jax": "0.10.2"})
    written = recipe(tmp_path, run)
    assert requirements(written["environments.txt"]) == ["tinygrad==0.14.0"]
    assert not any(line.startswith("tinygrad") for line in requirements(written["requirements.txt"]))
    assert variables(written["Dockerfile"])["PIP_CONSTRAINT"] == "/race/environments.txt"
    assert any(name == "RUN" and "clang" in rest for name, rest in instructions(written["Dockerfile"]))


def test_a_version_that_was_asked_for_stays_in_the_plan(tmp_path: Path) -> None:
    run = run_of("jax==0.9.0", "jax", versions={"jax": "0.10.2"})
    written = recipe(tmp_path, run)
    assert "jax==0.10.2" in requirements(written["requirements.txt"])
    assert "jax==0.9.0" not in written["requirements.txt"] + written["environments.txt"]


def test_a_compiling_torch_gets_a_compiler(tmp_path: Path) -> None:
    lines = instructions(recipe(tmp_path, run_of("torch:compile"))["Dockerfile"])
    assert any(name == "RUN" and "g++" in rest for name, rest in lines)


def test_callables_and_programs_need_no_package(tmp_path: Path) -> None:
    run = run_of("python:f=os.getpid", "./worker", versions={"python:f=os.getpid": "3.12.4"})
    assert requirements(recipe(tmp_path, run)["requirements.txt"]) == [f"fairlap=={run.fairlap}"]


@pytest.mark.parametrize(
    "value", ['a"b', "$HOME ${X}", "back\\slash", "two words", "--xla_flag=1 --other='x'", "#", "a\\", "set, but empty"]
)
def test_variables_come_back_as_they_were(tmp_path: Path, value: str) -> None:
    run = run_of("jax", variable__XLA_FLAGS=value)
    expected = "" if value == "set, but empty" else value
    assert variables(recipe(tmp_path, run)["Dockerfile"])["XLA_FLAGS"] == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("variable LD_PRELOAD", "/usr/lib/x.so"),
        ("variable XLA_FLAGS", "a\nRUN rm -rf x"),
        ("variable NVIDIA_API_KEY", "set; value not recorded"),
        ("variable XLA_FLAGS", "aaa... (5000 letters)"),
        ("variable A B=c", "1"),
    ],
)
def test_variables_that_mean_nothing_elsewhere_stay_out(tmp_path: Path, name: str, value: str) -> None:
    run = run_of("jax")
    run.machine[name] = value
    dockerfile = recipe(tmp_path, run)["Dockerfile"]
    assert set(variables(dockerfile)) == {"OMP_NUM_THREADS"}
    assert "rm -rf x" not in dockerfile


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("package numpy", "1.0; rm -rf x"),
        ("package numpy", "1.0\n--index-url x"),
        ("package numpy --pre", "1.0"),
        ("python", "cpython 3.12.4\nRUN x"),
        ("python", "pypy 7.3"),
        ("python", ""),
    ],
)
def test_a_run_with_an_invalid_name_or_version_gets_no_recipe(tmp_path: Path, name: str, value: str) -> None:
    run = run_of("jax")
    run.machine[name] = value
    with pytest.raises(InvalidRequest) as refused:
        write_recipe(run, tmp_path / "again")
    assert refused.value.code == "E_RECIPE"
    assert not (tmp_path / "again").exists()


WHEEL = f"jax @ file:///jax.whl#sha256={'0' * 64}"


@pytest.mark.parametrize("option", [("python", "/venv/bin/python"), ("with", WHEEL)])
def test_a_package_of_this_machine_alone_gets_no_recipe(option: tuple[str, str], tmp_path: Path) -> None:
    run = run_of("jax")
    own = msgspec.structs.replace(run.plan.contestants[0], options=(option,))
    run.plan = msgspec.structs.replace(run.plan, contestants=(own,))
    with pytest.raises(InvalidRequest) as refused:
        write_recipe(run, tmp_path / "again")
    assert refused.value.code == "E_RECIPE"


def test_a_process_with_an_invalid_version_gets_no_recipe(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="1 --pre"):
        write_recipe(run_of("jax", versions={"jax": "1 --pre"}), tmp_path)


def test_nonsense_in_other_facts_stays_text(tmp_path: Path) -> None:
    nonsense = "x\nFROM evil\n`<script>`|"
    run = run_of("jax", image__digest=nonsense, distribution=nonsense, kernel=nonsense)
    written = recipe(tmp_path, run)
    assert [rest for name, rest in instructions(written["Dockerfile"]) if name == "FROM"] == ["python:3.12.4-slim"]
    assert "| `kernel` | `x FROM evil <script> \\|` |" in written["README.md"]


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    for folder in (tmp_path, tmp_path / "mine"):
        with pytest.raises(InvalidRequest, match="folder"):
            write_recipe(run_of("jax"), folder)


def test_a_full_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(NotWritten) as refused:
        write_recipe(run_of("jax"), tmp_path / "again")
    assert refused.value.code == "E_FILE"


def test_the_command_writes_the_recipe_and_refuses_rubbish(tmp_path: Path) -> None:
    save_run(tmp_path / "run.json", run_of("jax"))
    written = output("recipe", tmp_path / "run.json", "-o", tmp_path / "again")
    assert [file for file in _FILES if str(tmp_path / "again" / file) not in written] == []
    assert [file for file in _FILES if not (tmp_path / "again" / file).exists()] == []
    (tmp_path / "rubbish.json").write_text("{")
    assert refusal("recipe", tmp_path / "rubbish.json", "-o", tmp_path / "other").code == "E_RUN_FILE"


def test_a_user_s_model_is_in_the_recipe_where_its_plan_looks_for_it(tmp_path: Path) -> None:
    run = run_with_model(tmp_path / "mine")
    written = {path.relative_to(tmp_path / "again") for path in write_recipe(run, tmp_path / "again")}
    assert Path("plan.json") in written
    (work,) = load_plan(tmp_path / "again" / "plan.json").works
    assert work.source is not None
    assert Path(work.source.path) == tmp_path / "again" / "models" / "m.onnx"
    assert Path(work.source.path).read_bytes() == b"model"
    assert Path(work.source.labels).read_bytes() == b"labels"
    assert dict(work.source.files)[work.source.path] == sha256(b"model").hexdigest()
    assert work.label == run.plan.works[0].label
    assert ("COPY", "models models") in instructions((tmp_path / "again" / "Dockerfile").read_text())


@pytest.mark.parametrize("change", ["changed", "gone", "large"])
def test_a_model_that_is_not_in_the_recipe_is_named_with_its_hash_and_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    run = run_with_model(tmp_path / "mine")
    if change == "large":
        monkeypatch.setattr(own_models, "MOST_BYTES", 5)
    elif change == "gone":
        (tmp_path / "mine" / "m.onnx").unlink()
    else:
        (tmp_path / "mine" / "m.onnx").write_bytes(b"another")
    write_recipe(run, tmp_path / "again")
    assert not (tmp_path / "again" / "models" / "m.onnx").exists()
    text = (tmp_path / "again" / "README.md").read_text()
    assert sha256(b"model").hexdigest() in text
    assert "models/m.onnx" in text


def test_a_path_that_leaves_the_recipe_is_refused(tmp_path: Path) -> None:
    run = run_with_model(tmp_path / "mine")
    (work,) = run.plan.works
    assert work.source is not None
    escaping = msgspec.structs.replace(work.source, path="/tmp/../etc/m.onnx")
    run.plan = msgspec.structs.replace(run.plan, works=(msgspec.structs.replace(work, source=escaping),))
    with pytest.raises(InvalidRequest) as refused:
        write_recipe(run, tmp_path / "again")
    assert refused.value.code == "E_RECIPE"


def run_with_model(folder: Path) -> Run:
    """Make a run of a user's model with labels next to it."""
    folder.mkdir()
    contents = {"m.onnx": b"model", "y.npy": b"labels"}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    files = tuple((str(folder / name), sha256(content).hexdigest()) for name, content in contents.items())
    run = run_of("torch")
    (work,) = run.plan.works
    source = Source("m.onnx", str(folder / "m.onnx"), str(folder), labels=str(folder / "y.npy"), files=files)
    run.plan = msgspec.structs.replace(run.plan, works=(msgspec.structs.replace(work, source=source),))
    return run


def test_the_packages_of_a_server_are_required_and_a_server_that_ran_before_makes_no_recipe(tmp_path: Path) -> None:
    run = run_of("torch:over=http", versions={"torch:over=http": "2.13.0"}, package__fastapi="0.120.0")
    required = recipe(tmp_path / "served", run)["requirements.txt"].splitlines()
    assert {"torch==2.13.0", "fastapi==0.120.0"} < set(required)
    assert any(line.startswith("uvicorn") for line in required)
    with pytest.raises(InvalidRequest) as raised:
        write_recipe(run_of("torch,http://127.0.0.1/x"), tmp_path / "server")
    assert raised.value.code == "E_RECIPE"
