"""``fairlap suite``: every race runs once, the exit status is one, and what is missing can be run later."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from command_line import invoke, output, refusal
from fairlap.cli.races.suite_races import begun_text
from fairlap.suite.suite_document import SuiteDocument, read_suite_document
from published_schemas import checked
from suites import folders_of_callables, given_races, suite_of_calls

NAMES = [f"f{number}" for number in range(10)]
STEPS = dict.fromkeys(NAMES, 10)
SHARED = 'max_slowdown = "5%"\nthreads = 1\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folders_of_callables(tmp_path, STEPS, STEPS)
    tags = {name: "quick" if name in ("f1", "f3") else "slow" for name in NAMES}
    (tmp_path / "suite.toml").write_text(suite_of_calls(NAMES, SHARED, tags))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*options: object) -> Result:
    return invoke("suite", "run", "suite.toml", "--base", "base", "--change", "change", "-q", *options)


def document(done: Result) -> dict[str, Any]:
    return checked(done.stdout)


@pytest.mark.slow
def test_the_one_that_is_slower_is_found_among_ten_and_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    races = given_races(monkeypatch, change={"f3": 1.2})
    done = run("--json", "-o", "suite.json", "-o", "suite.html", "-o", "suite.md", "-o", "suite.csv")
    found = document(done)
    assert (done.exit_code, found["exit_status"], found["state"]) == (1, 1, "finished")
    words = {race["name"]: [each["status"] for each in race["findings"]] for race in found["races"]}
    assert words == {name: ["slower" if name == "f3" else "passed"] for name in NAMES}
    assert sorted(races.ran) == NAMES
    assert races.ran == [race["name"] for race in sorted(found["races"], key=lambda race: race["place"])]
    assert {plan.alpha for plan in races.plans.values()} == {0.005}
    assert found["works"] == 10
    assert "f3" in (folder / "suite.html").read_text()
    assert (folder / "suite.csv").read_text().count("\n") == 21
    assert output("suite", "show", "suite.json", "--json") == done.stdout


@pytest.mark.slow
def test_the_order_is_drawn_and_not_that_of_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    races = given_races(monkeypatch)
    for _ in range(3):
        assert run().exit_code == 0
    assert len({tuple(races.ran[start : start + 10]) for start in (0, 10, 20)}) > 1


@pytest.mark.slow_but("options0", "options2", "options3")
@pytest.mark.parametrize(
    ("options", "given", "status"),
    [
        ((), {}, 0),
        (("--strict",), {}, 0),
        ((), {"change": {"f5": 1.05}}, 0),
        (("--strict",), {"change": {"f5": 1.05}}, 2),
        ((), {"fails": {"f5"}}, 3),
        ((), {"fails": {"f5"}, "change": {"f4": 1.2}}, 1),
    ],
)
def test_the_exit_status_is_the_gates(
    folder: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], given: dict[str, Any], status: int
) -> None:
    given_races(monkeypatch, **given)
    assert run(*options).exit_code == status


def test_what_is_left_out_is_in_the_table_and_in_the_document(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    races = given_races(monkeypatch)
    found = document(run("--tag", "quick", "--json"))
    assert sorted(races.ran) == ["f1", "f3"]
    assert {each["name"] for each in found["left_out"]} == set(NAMES) - {"f1", "f3"}
    assert {plan.alpha for plan in races.plans.values()} == {0.025}
    text = run("--only", "f7").stdout
    assert all(name in text for name in NAMES)


@pytest.mark.slow
def test_shards_run_every_race_once_and_share_one_error_rate(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    races = given_races(monkeypatch)
    found = [document(run("--shard", f"{number}/3", "--json")) for number in (1, 2, 3)]
    assert sorted(races.ran) == NAMES
    assert {plan.alpha for plan in races.plans.values()} == {0.005}
    assert [len(each["races"]) + len(each["left_out"]) for each in found] == [10, 10, 10]


def test_an_interrupted_suite_keeps_what_was_measured_and_runs_the_rest_later(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_races(monkeypatch, interrupts_at="f4")
    done = run("--no-store")
    assert done.exit_code == 130
    [kept] = folder.glob("suite-*.json")
    before = read_suite_document(kept)
    states = {race.name: race.state for race in before.races}
    assert states["f4"] == "interrupted"
    finished = {name for name, state in states.items() if state == "finished"}
    races = given_races(monkeypatch, change={"f4": 1.2})
    resumed = invoke("suite", "run", "suite.toml", "--resume", kept, "--no-store", "-q", "--json")
    after = json.loads(resumed.stdout)
    assert set(races.ran) == set(NAMES) - finished
    assert (resumed.exit_code, after["state"], after["suite"]) == (1, "finished", before.suite)
    assert {race["state"] for race in after["races"]} == {"finished"}


@pytest.mark.slow
def test_the_command_that_resumes_a_suite_has_its_files_and_its_other_options(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_races(monkeypatch, interrupts_at="f4")
    done = run("--no-store", "-o", "suite.html", "-o", "my suite.json", "--budget", "90s")
    [line] = re.findall("resume with: (.*)", done.stderr)
    words = shlex.split(line)
    assert words[:6] == ["fairlap", "suite", "run", "suite.toml", "--resume", "my suite.json"]
    assert [words[place + 1] for place, word in enumerate(words) if word == "-o"] == ["suite.html", "my suite.json"]
    assert {"--no-store", "--quiet"} <= set(words)
    assert words[words.index("--budget") + 1] == "90s"
    given_races(monkeypatch)
    (folder / "suite.html").unlink()
    assert invoke(*words[1:]).exit_code == 0
    assert (folder / "suite.html").is_file()
    assert read_suite_document(folder / "my suite.json").state == "finished"


@pytest.mark.slow
def test_the_result_of_another_suite_is_not_resumed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given_races(monkeypatch, interrupts_at="f4")
    run("-o", "kept.json", "--no-store")
    resume = ("suite", "run", "suite.toml", "--resume", "kept.json")
    assert refusal(*resume, "--tag", "quick").code == "E_SUITE"
    (folder / "suite.toml").write_text((folder / "suite.toml").read_text() + "# changed\n")
    assert refusal(*resume).code == "E_SUITE"
    (folder / "nightly.toml").write_text((folder / "suite.toml").read_text())
    of_another = refusal("suite", "run", "nightly.toml", "--resume", "kept.json")
    assert of_another.code == "E_SUITE"
    assert "suite.toml" in str(of_another)
    assert "nightly.toml" in str(of_another)
    (folder / "other.json").write_text("{}")
    assert refusal("suite", "show", "other.json").code == "E_SUITE"


def test_a_base_that_cannot_run_a_command_is_one_finding_and_the_others_race(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (folder / "suite.toml").open("a") as file:
        file.write('[[race]]\nname = "program"\ncommand = "./only-in-change"\n')
    races = given_races(monkeypatch)
    done = run("--json", "--only", "program", "--only", "f1")
    found = document(done)
    by_name = {race["name"]: race for race in found["races"]}
    assert (done.exit_code, races.ran) == (3, ["f1"])
    assert (found["works"], races.plans["f1"].alpha) == (1, 0.05)  # nothing can be claimed of the other
    assert (by_name["program"]["state"], by_name["program"]["code"]) == ("failed", "E_BASELINE")
    assert by_name["f1"]["state"] == "finished"


def test_the_note_of_races_that_run_as_one_counts_all_of_them() -> None:
    assert begun_text(["parse"], 6, 7) == "race 7 of 7: parse"
    assert begun_text(["sort", "join"], 5, 7) == "races 6 to 7 of 7: sort, join"


def test_what_cannot_be_run_is_refused_before_the_first_race(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    races = given_races(monkeypatch)
    assert refusal("suite", "run", "suite.toml").code == "E_SUITE"  # no race of contestants
    assert refusal("suite", "run", "suite.toml", "--change", "change").code == "E_SUITE"
    for options in (("--change", "gone"), ("--change", "base"), ("--change", "change", "--only", "f99")):
        done = invoke("suite", "run", "suite.toml", "--base", "base", *options)
        assert (done.exit_code, "[E_SUITE]" in done.stderr) == (3, True)
    (folder / "suite.toml").write_text(suite_of_calls(NAMES, "threads = 4096\n"))
    assert (run().exit_code, races.ran) == (3, [])


def test_races_of_contestants_are_a_table_of_works_by_contestants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    contestants = 'contestants = ["python:call=os.getpid", "python:call=os.getppid"]\n'
    races = "".join(f'[[race]]\nname = "{name}"\nmodels = ["callable"]\n' for name in ("one", "two"))
    (tmp_path / "suite.toml").write_text(f'threads = 1\nmax_slowdown = "3%"\n{contestants}{races}')
    given = given_races(monkeypatch)
    done = invoke("suite", "run", "suite.toml", "-q", "-o", "suite.json")
    found: SuiteDocument = read_suite_document(tmp_path / "suite.json")
    assert (done.exit_code, len(given.ran), found.works, found.base) == (0, 2, 2, None)
    assert {each.contestant for race in found.races for work in race.works for each in work.contestants} == {
        "python:call=os.getpid",
        "python:call=os.getppid",
    }
    assert {each.findings == [] for each in found.races} == {True}


def test_the_list_has_every_race_with_its_tags(folder: Path) -> None:
    found = checked(output("suite", "list", "suite.toml", "--json"))
    assert [each["name"] for each in found["races"]] == NAMES
    assert found["races"][1]["tags"] == ["quick"]


@pytest.mark.slow_but("options1", "options3")
@pytest.mark.parametrize("options", [(), ("--tag", "quick"), ("--only", "f[12]"), ("--shard", "2/2")])
def test_the_list_is_what_a_run_with_the_same_options_would_race_and_leave_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    given_races(monkeypatch)
    with (folder / "suite.toml").open("a") as file:
        file.write('[[race]]\nname = "alone"\nmodels = ["callable"]\ncontestants = ["python:call=os.getpid"]\n')
    ran = document(run("--json", *options))
    listed = checked(output("suite", "list", "suite.toml", "--base", "base", "--change", "change", "--json", *options))
    assert [each["name"] for each in listed["races"]] == [each["name"] for each in ran["races"]]
    assert listed["left_out"] == ran["left_out"]
    assert "alone" in {each["name"] for each in listed["left_out"]}
    both = checked(output("suite", "list", "suite.toml", "--json"))
    assert [each["name"] for each in both["races"]] == [*NAMES, "alone"]
