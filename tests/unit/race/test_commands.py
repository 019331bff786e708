"""Commands of a request race as contestants under the names that they were given."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import msgspec
import pytest
from command_line import invoke, output, refusal
from fairlap import quantity_text
from fairlap.browse.list_page import RunList, page_of
from fairlap.errors import InvalidRequest
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.render.plan_command import command_of
from fairlap.request.commands import Command, command_in, contestants_of
from fairlap.request.names import Contestants, contestant_named
from fairlap.request.race_request import RaceRequest, read_request
from fairlap.results.results import results_of
from fairlap.store.runs.run_file import load_run
from fairlap.store.search import Wanted
from fairlap.store.store import open_store


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("old=./old --size 10", ("old", Command("./old --size 10"))),
        ("old@../base=./old a=b,c:d", ("old", Command("./old a=b,c:d", "../base"))),
        ("old=ssh user@host=x", ("old", Command("ssh user@host=x"))),
    ],
)
def test_a_command_is_given_with_its_name_and_folder(text: str, expected: tuple[str, Command]) -> None:
    assert command_in(text) == expected


@pytest.mark.parametrize("text", ["./old", "", "old@=./old"])
def test_a_text_without_a_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        command_in(text)
    assert raised.value.code == "E_COMMAND"


@pytest.mark.parametrize(("name", "run"), [("a b", "x"), ("a,b", "x"), ("", "x"), ("a", ""), ("a", "'x"), ("a", "''")])
def test_a_name_or_a_command_that_cannot_be_read_is_refused(name: str, run: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        contestants_of({name: run})
    assert raised.value.code == "E_COMMAND"


def test_a_short_command_needs_no_name() -> None:
    name = contestant_named("command:./old --x=1:2")
    assert (name.framework, dict(name.options)) == ("command", {"run": "./old --x=1:2"})


def test_a_request_file_has_commands_and_needs_no_model(tmp_path: Path) -> None:
    file = tmp_path / "race.toml"
    file.write_text('[commands]\nold = "./old"\nnew = { run = "./new --x", folder = "../new" }\n')
    plan = plan_of(read_request(file))
    assert [name.text for name in plan.contestants] == ["old", "new"]
    assert [work.model for work in plan.works] == ["callable"]
    assert dict(plan.contestants[1].options) == {"run": "./new --x", "folder": "../new"}


def test_commands_are_named_once() -> None:
    assert refusal("compare", "--command", "a=x", "--command", "a=y").code == "E_COMMAND"
    assert refusal("compare", "callable", "--command", "a=x", "--on", "a").code == "E_CONTESTANT"


@pytest.mark.parametrize("missing", ["a=no-such-program", "a=./no-such-program", "a@no-such-folder=true", "a=."])
def test_a_program_or_folder_that_is_missing_is_found_before_the_race(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = ("--command", missing, "--command", "b=true", "--blocks", 1, "--no-store")
    error = refusal("compare", *given, "-o", "run.json")
    assert error.code == "E_COMMAND"
    assert str(error).startswith("a: ")
    assert not list(tmp_path.iterdir())
    output("compare", *given, "--dry-run")  # it may run elsewhere


def test_the_same_output_is_for_commands() -> None:
    with pytest.raises(InvalidRequest) as raised:
        plan_of(RaceRequest(models=("callable",), contestants=Contestants("python:call=os.getpid"), same_output=True))
    assert raised.value.code == "E_COMMAND"


@pytest.mark.sanitized
def test_commands_race_and_one_that_prints_something_else_is_disqualified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = {"a": "echo five", "b": "echo five", "c": "echo four", "d": "sh -c 'exit 3'"}
    options = [word for name, run in commands.items() for word in ("--command", f"{name}={run}")]
    done = invoke(
        "compare", *options, "--same-output", "--blocks", "1", "--seconds", "0.02", "--conditions", "as-found",
        "--no-store", "--quiet", "-o", "run.json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    found = {each.contestant: each for each in load_run(Path("run.json")).processes}
    assert {name: (each.outcome, each.code) for name, each in found.items()} == {
        "a": ("finished", ""),
        "b": ("finished", ""),
        "c": ("disqualified", "E_OUTPUT"),
        "d": ("failed", "E_COMMAND"),
    }
    assert found["a"].work_in == "child"


@pytest.mark.sanitized
def test_a_race_of_commands_is_headed_by_what_is_raced_and_writes_no_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path))
    done = invoke(
        "compare", "--command", "a=true", "--blocks", "1", "--seconds", "0.02", "--conditions", "as-found",
        "--no-store",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("commands · cpu")
    assert "weights" not in done.stderr


@pytest.mark.slow
def test_the_memory_and_cpu_time_of_a_run_are_shown_as_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = f"{sys.executable} -I -S -c 'held = bytearray(40 << 20)'"
    done = invoke(
        "compare", "--command", f"a={program}", "--blocks", "1", "--seconds", "0.02", "--conditions", "as-found",
        "--no-store", "-o", "run.json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    [row] = results_of(load_run(Path("run.json"))).rows
    assert row.peak_memory_bytes is not None
    assert 40 << 20 < row.peak_memory_bytes.value < 80 << 20
    assert f"a run holds {quantity_text.size(row.peak_memory_bytes.value)} at most, " in done.stdout


@pytest.mark.parametrize(
    ("contestants", "title"),
    [
        ("command:true", "commands"),
        ("python:call=os.getpid", "callables"),
        ("command:true,python:call=os.getpid", "commands and callables · answers not compared"),
    ],
)
def test_a_work_without_a_model_has_the_name_of_what_is_raced(contestants: str, title: str) -> None:
    plan = plan_of(RaceRequest(models=("callable",), contestants=Contestants(contestants), blocks=1))
    assert plan.title_of(plan.works[0]) == title


@pytest.mark.sanitized
def test_a_stored_run_of_commands_is_listed_without_a_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "store.sqlite"))
    done = invoke(
        "compare", "--command", "a=true", "--blocks", "1", "--seconds", "0.02", "--conditions", "as-found",
        "--quiet", "-o", str(tmp_path / "x.junit.xml"),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    with open_store(reading=True) as store:
        listed = store.runs()
    texts = {
        "runs": invoke("runs").stdout,
        "serve": page_of(RunList(Wanted(), listed)).decode(),
        "junit": (tmp_path / "x.junit.xml").read_text(),
        "across": invoke("across", "last").stdout,
    }
    for name, text in texts.items():
        assert "commands" in text, name
        assert "infer" not in text, name


@pytest.mark.slow
@pytest.mark.sanitized
def test_two_checkouts_of_a_callable_race(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, value in (("base", 1), ("change/src", 2)):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "raced_kernel.py").write_text(f"def run(): return {value}\n")
    monkeypatch.chdir(tmp_path)
    calls = [
        f"python:call={each}"
        for each in ("raced_kernel.run:path=base", "raced_kernel.run:path=change", "json.dumps:path=base")
    ]
    done = invoke(
        "compare", "callable", "--on", ",".join(calls), "--blocks", "1", "--seconds", "0.02",
        "--conditions", "as-found", "--no-store", "--quiet", "-o", "run.json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    found = {each.contestant: each for each in load_run(Path("run.json")).processes}
    files = [found[call].in_force.get("file") for call in calls]
    assert files[0] == str(tmp_path / "base/raced_kernel.py")
    assert files[1] == str(tmp_path / "change/src/raced_kernel.py")
    assert found[calls[2]].outcome == "failed"  # it is not in that folder


def test_a_plan_of_commands_is_drawn_again_by_its_command(tmp_path: Path) -> None:
    file = tmp_path / "race.toml"
    file.write_text('seed = 3\n[commands]\nold = "./old \'a b\'"\nnew = { run = "./new=1", folder = "../new" }\n')
    plan = plan_of(read_request(file))
    words = shlex.split(command_of(plan))
    assert words[:2] == ["fairlap", "compare"]
    again = json.loads(output(*words[1:], "--dry-run", "--json"))
    assert again == json.loads(msgspec.json.encode(plan))
