"""A race written down as TOML: everything in it is raced, what is wrong with it is told by line and key."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest
from fairlap.errors import InvalidRequest
from fairlap.race.plan_from_request import ending_of, output_files, plan_of
from fairlap.render.outputs import read_rows
from fairlap.request.race_request import FILE, RaceRequest, schema_text
from fairlap.request.toml_file import TomlFile
from fairlap.store.run_file import load_run

TOP = Path(__file__).parents[3]
EXAMPLES = TOP / "docs" / "examples"

pytestmark = pytest.mark.sanitized


def refuse(key: object, why: str) -> InvalidRequest:
    return InvalidRequest(why)


def fairlap(*arguments: str, folder: Path, cache: Path | None = None) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, **({"FAIRLAP_CACHE": str(cache)} if cache else {})}
    command = [sys.executable, "-m", "fairlap", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder, env=variables)


def test_the_published_schema_is_that_of_the_definition() -> None:
    assert (TOP / FILE).read_text() == schema_text()


def test_the_schema_and_the_page_tell_every_key() -> None:
    told = msgspec.json.decode(schema_text())["$defs"]
    keys = {*told["RaceRequest"]["properties"], *(f"outputs.{name}" for name in told["Outputs"]["properties"])}
    page = set(
        re.findall(r"^\| `([a-z_.]+)` \|", (TOP / "docs/how-to/write-a-request-file.md").read_text(), re.MULTILINE)
    )
    assert page | {"outputs"} == keys
    assert all(each["description"] for each in told["RaceRequest"]["properties"].values())


def test_the_documented_example_runs_and_leaves_its_files(tmp_path: Path) -> None:
    for name in ("race.toml", "two_callables.py"):
        shutil.copy(EXAMPLES / name, tmp_path)
    told = fairlap(
        "compare", "race.toml", "--blocks", "1", "--seconds", "0.01", folder=tmp_path, cache=tmp_path / "cache"
    )
    assert told.returncode == 0, told.stderr
    rows = read_rows(tmp_path / "two_callables.csv")
    assert {row.contestant.rpartition(".")[2] for row in rows} == {"sort_shuffled", "sort_reversed"}
    assert {row.currency for row in rows} == {"EUR"}
    [run_id] = {row.run for row in rows}
    assert f"kept as {run_id}; " in told.stderr
    assert run_id in (tmp_path / "two_callables.html").read_text()
    assert (tmp_path / "two_callables.md").read_text().startswith("### fairlap: ")
    saved = load_run(tmp_path / "two_callables.json").plan
    assert (saved.seed, saved.threads, saved.measuring.seconds) == (7, 1, 0.01)


def test_the_example_gives_a_value_to_every_key_that_it_may_have() -> None:
    text = (EXAMPLES / "race.toml").read_text()
    given = {*tomllib.loads(text), *re.findall(r"^# (\w+) = ", text, re.MULTILINE)}
    assert given == set(RaceRequest.__struct_fields__)


def test_every_combination_that_is_asked_for_is_raced_once() -> None:
    asked = RaceRequest(
        models=["mlp", "gemm"], contestants=["python"], batch=[1, 8], mode=["infer", "grad"], precision=["fp32", "bf16"]
    )
    works = plan_of(asked, refuse).works
    assert len(works) == len(set(works)) == 16
    assert {work.label for work in works} >= {"mlp · grad · bf16 · batch 8", "gemm · infer · fp32 · batch 1"}


def test_the_models_own_batch_is_taken_when_none_is_given() -> None:
    asked = RaceRequest(models=["convnet", "mlp"], contestants=["python"])
    assert [work.batch for work in plan_of(asked, refuse).works] == [8, 1]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"models": ["mlp", "softmax"], "mode": ["infer", "grad"]}, "softmax has no mode grad; it has infer"),
        ({"models": ["callable"], "precision": ["fp32", "bf16"]}, "callable has no precision bf16; it has fp32"),
        ({"models": ["mlp", "mlp"]}, "mlp · infer · fp32 · batch 1 is asked for twice"),
        ({"batch": [8, 8]}, "mlp · infer · fp32 · batch 8 is asked for twice"),
        ({"data": ""}, "there is no data at ''; give synthetic"),
        ({"data": "a\0b"}, r"'a\\x00b' is no path: embedded null byte"),
        ({"batch": 0}, "batch must be between 1 and"),
    ],
)
def test_what_a_model_lacks_or_what_stands_twice_is_refused(changes: dict[str, object], words: str) -> None:
    asked = msgspec.structs.replace(RaceRequest(models=["mlp"], contestants=["python"]), **changes)
    with pytest.raises(InvalidRequest, match=words):
        plan_of(asked, refuse)


def test_blocks_are_twelve_or_sixty_where_something_else_ends_the_race() -> None:
    alone = RaceRequest(models=["mlp"], contestants=["python"], conditions="as-found")
    assert len(plan_of(alone, refuse).blocks) == 12
    ended = msgspec.structs.replace(alone, target="2%", budget="10m")
    assert len(plan_of(ended, refuse).blocks) == 60
    assert ending_of(ended, refuse) == (0.02, 600.0)
    assert ending_of(msgspec.structs.replace(alone, target=0.02, budget=90), refuse) == (0.02, 90.0)


GOOD = 'models = ["mlp"]\ncontestants = ["python"]\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('contestants = ["jax"]\n', "models is missing"),
        ('models = []\ncontestants = ["jax"]\n', "line 1: models: expected a list of length >= 1"),
        ('models = ["mpl"]\ncontestants = ["jax"]\n', "did you mean mlp"),
        ('models = ["mlp"]\ncontestants = ["torhc"]\n', "torhc"),
        (GOOD + "blokcs = 3\n", "line 3: blokcs: there is no such key; did you mean blocks?"),
        (GOOD + "\nblocks = 0\n", "line 4: blocks: expected a whole number >= 1"),
        (GOOD + "blocks = 100_000_000\n", "line 3: blocks: expected a whole number <= 10000"),
        (GOOD + "threads = 100000\n", "line 3: threads: threads must lie between 1 and"),
        (GOOD + "batch = [1,\n 0]\n", "line 3: batch: batch must be between 1"),
        (GOOD + "batch = []\n", "line 3: batch: expected a list of length >= 1"),
        (GOOD + "mode = []\n", "line 3: mode: expected a list of length >= 1"),
        (GOOD + "batch = '8'\n", "line 3: batch: expected a whole number or a list, got text"),
        (GOOD + "mode = ['infer', 'train']\n", "line 3: mode[1]: there is no 'train'; there are grad, infer"),
        (GOOD + "mode = 'train'\n", "line 3: mode: there is no 'train'; there are grad, infer"),
        (GOOD + "conditions = 'quiet'\n", "line 3: conditions: there is no 'quiet'; there are as-found, controlled"),
        (GOOD + "target = '200%'\n", "line 3: target: '200%' is no share such as 1% or 0.01"),
        (GOOD + "budget = 'soon'\n", "line 3: budget: 'soon' is no duration such as 90s"),
        (GOOD + "seconds = 0\n", "line 3: seconds: expected a number > 0"),
        (GOOD + "seconds = nan\n", "line 3: seconds: "),
        (GOOD + "device = 'gpu'\n", "line 3: device: expected cpu, cuda or cuda:N"),
        (GOOD + "baseline = 'jax'\n", "line 3: baseline: the baseline 'jax' did not race; did you mean python?"),
        (GOOD + "price = 'cheap'\n", "line 3: price: there is no price 'cheap'"),
        (GOOD + "[outputs]\ncsv = '/nowhere/a.csv'\n", "line 4: outputs.csv: /nowhere/a.csv cannot be written"),
        (GOOD + "[outputs]\ncvs = 'a.csv'\n", "line 4: outputs.cvs: there is no such key; did you mean csv?"),
        (GOOD + "blocks 3\n", "line 3: this is not TOML"),
    ],
)
def test_a_fault_in_a_plan_is_told_by_its_line_and_key(
    text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.testing import CliRunner
    from fairlap.cli.commands.compare import command

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = tmp_path / "race.toml"
    file.write_text(text)
    result = CliRunner().invoke(command, [str(file)])
    assert isinstance(result.exception, InvalidRequest)
    assert str(result.exception).startswith(str(file))
    assert words in str(result.exception)
    assert len(str(result.exception).splitlines()) == 1


def test_what_stands_on_the_command_line_wins_and_is_refused_by_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "race.toml").write_text(GOOD + "blocks = 3\nseed = 5\nmode = 'grad'\n")
    told = fairlap("compare", "race.toml", "--blocks", "2", "--mode", "infer,grad", "--dry-run", folder=tmp_path)
    assert told.stdout.startswith("seed 5,"), told.stderr
    assert told.stdout.count("mlp · infer") == told.stdout.count("mlp · grad") == 4
    wrong = fairlap("compare", "race.toml", "--blocks", "0", folder=tmp_path)
    assert "blocks must lie between 1 and 10,000, not 0" in wrong.stderr
    two = fairlap("compare", "mlp", "race.toml", folder=tmp_path)
    assert "a plan file names its own models; give it alone" in two.stderr
    none = fairlap("compare", "none.toml", folder=tmp_path)
    assert "a plan, none.toml, cannot be read: No such file or directory" in none.stderr


def test_output_files_are_checked_before_the_race(tmp_path: Path) -> None:
    outputs = TomlFile(_written(tmp_path, "[outputs]\nmd = 'a.md'\n"), "a plan").read(RaceRequest).outputs
    assert output_files(outputs, refuse) == {"md": Path("a.md")}
    with pytest.raises(InvalidRequest, match="it is a folder"):
        output_files(msgspec.structs.replace(outputs, csv=str(tmp_path)), refuse)
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    with pytest.raises(InvalidRequest, match="it is a link to itself"):
        output_files(msgspec.structs.replace(outputs, csv=str(tmp_path / "loop.csv")), refuse)


def test_a_plan_is_known_by_its_ending_in_any_letters(tmp_path: Path) -> None:
    (tmp_path / "PLAN.TOML").write_text(GOOD)
    told = fairlap("compare", "PLAN.TOML", "--dry-run", folder=tmp_path)
    assert told.returncode == 0, told.stderr


def _written(folder: Path, text: str) -> Path:
    (folder / "race.toml").write_text(GOOD + text)
    return folder / "race.toml"


def test_rows_are_written_also_after_an_interruption(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "two_callables.py", tmp_path)
    calls = "python:call=two_callables.sort_shuffled,python:call=two_callables.sort_reversed"
    race = subprocess.Popen(
        [sys.executable, "-m", "fairlap", "compare", "callable", "--on", calls, "--blocks", "200", "--seconds", "0.01",
         "--csv", "rows.csv", "--md", "rows.md"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert race.stderr is not None
    seen = ""
    while "[3/" not in seen:
        line = race.stderr.readline()
        assert line, seen
        seen += line
    race.send_signal(signal.SIGINT)
    _, rest = race.communicate(timeout=60)
    assert race.returncode == 130, seen + rest
    assert len(read_rows(tmp_path / "rows.csv")) >= 2
    assert "python:call=two_callables.sort_shuffled" in (tmp_path / "rows.md").read_text()


def test_one_file_that_cannot_be_written_does_not_lose_the_other(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "two_callables.py", tmp_path)
    told = fairlap(
        "compare", "callable", "--on", "python:call=two_callables.sort_shuffled", "--blocks", "1", "--seconds", "0.01",
        "--csv", "/dev/full", "--md", "rows.md", "--price", "1/h", folder=tmp_path,
    )  # fmt: skip
    assert told.returncode == 1
    assert "fairlap: /dev/full could not be written: No space left on device" in told.stderr
    assert (tmp_path / "rows.md").exists()
    assert "callable · infer" in told.stdout
