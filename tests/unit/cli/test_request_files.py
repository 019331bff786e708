"""A race in a request file: everything in it is raced, and errors name their key."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from command_line import fairlap, output, refusal
from fairlap.cli.options.output_options import writable
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.render.outputs import read_rows
from fairlap.render.plan_command import command_of
from fairlap.request.names import Contestants, Devices
from fairlap.request.race_request import FILE, RaceRequest, read_request, schema_text
from fairlap.request.toml_file import called
from fairlap.request.units import Seconds, Share
from fairlap.store.runs.run_file import load_run
from fairlap.verdict.when_to_stop.looks import possible_looks

TOP = Path(__file__).parents[3]
EXAMPLES = TOP / "docs" / "examples"

pytestmark = pytest.mark.sanitized


def test_the_published_schema_is_that_of_the_definition() -> None:
    assert (TOP / FILE).read_text() == schema_text()


def test_the_schema_and_the_page_have_every_key() -> None:
    properties = msgspec.json.decode(schema_text())["$defs"]["RaceRequest"]["properties"]
    page = (TOP / "docs" / "how-to" / "write-a-request-file.md").read_text()
    assert set(re.findall(r"^\| `([a-z_.]+)` \|", page, re.MULTILINE)) == set(properties)
    assert all(each["description"] for each in properties.values())


@pytest.mark.slow
def test_the_documented_example_runs_and_leaves_its_files(tmp_path: Path) -> None:
    for name in ("race.toml", "two_callables.py"):
        shutil.copy(EXAMPLES / name, tmp_path)
    done = fairlap(
        "compare", "race.toml", "--blocks", 1, "--seconds", "10ms", cwd=tmp_path, FAIRLAP_CACHE=tmp_path / "cache"
    )
    assert done.returncode == 0, done.stderr
    rows = read_rows(tmp_path / "two_callables.csv")
    assert {row.contestant.rpartition(".")[2] for row in rows} == {"sort_shuffled", "sort_reversed"}
    assert {row.currency for row in rows} == {"EUR"}
    [run_id] = {row.run for row in rows}
    assert f"stored as {run_id};" in done.stderr
    assert run_id in (tmp_path / "two_callables.html").read_text()
    assert (tmp_path / "two_callables.md").read_text().startswith("### fairlap: ")
    saved = load_run(tmp_path / "two_callables.json").plan
    assert (saved.seed, saved.threads, saved.measuring.seconds) == (7, 1, 0.01)


def test_the_example_gives_a_value_to_every_key_that_it_may_have() -> None:
    text = (EXAMPLES / "race.toml").read_text()
    given = {*tomllib.loads(text), *re.findall(r"^# (\w+) = ", text, re.MULTILINE)}
    assert given == set(RaceRequest.__struct_fields__)


def request(**changes: Any) -> RaceRequest:
    return RaceRequest(**{"models": ("mlp",), "contestants": Contestants("python"), **changes})


WRONG_VALUES: tuple[Any, ...] = (
    1,
    -1,
    1.5,
    float("nan"),
    True,
    "",
    "x",
    "\0",
    [],
    [1, 2],
    [[]],
    [True],
    [1.5],
    [{}],
    {},
    {"a": 1},
)


@pytest.mark.slow_but("True")
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("key", RaceRequest.__struct_fields__)
def test_a_value_of_any_type_is_read_or_refused_with_a_code(key: str, training: bool) -> None:
    of_training = {"models": ["digits"], "mode": "train", "to_score": 0.5} if training else {}
    for value in WRONG_VALUES:
        given = {"models": ["mlp"], "contestants": ["python"], **of_training, key: value}
        with suppress(FairlapError, msgspec.ValidationError):
            plan_of(msgspec.convert(given, RaceRequest, dec_hook=called))


def test_every_combination_is_raced_once() -> None:
    works = plan_of(
        request(models=("mlp", "gemm"), batch=(1, 8), mode=("infer", "grad"), precision=("fp32", "bf16"))
    ).works
    assert len(works) == len(set(works)) == 16
    assert {work.label for work in works} >= {"mlp · grad · bf16 · batch 8", "gemm · infer · fp32 · batch 1"}


def test_the_default_batch_is_the_models_own() -> None:
    assert [work.batch for work in plan_of(request(models=("convnet", "mlp"))).works] == [8, 1]


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ({"models": ("mlp", "softmax"), "mode": ("infer", "grad")}, "grad"),
        ({"models": ("callable",), "precision": ("fp32", "bf16")}, "bf16"),
        ({"models": ("mlp", "mlp")}, "mlp"),
        ({"batch": (8, 8)}, "--batch"),
        ({"data": ""}, "''"),
        ({"data": "a\0b"}, "null byte"),
        ({"batch": 0}, "batch"),
    ],
)
def test_what_a_model_lacks_and_what_is_given_twice_is_refused(changes: dict[str, Any], value: str) -> None:
    with pytest.raises(InvalidRequest, match=value):
        plan_of(request(**changes))


@pytest.mark.parametrize(("changes", "blocks"), [({}, 12), ({"target": Share("2%")}, 60), ({"blocks": 9}, 9)])
def test_one_contestant_runs_a_fixed_number_of_blocks(changes: dict[str, Any], blocks: int) -> None:
    plan = plan_of(request(**changes))
    assert len(plan.blocks) == blocks
    assert not plan.until_decided


@pytest.mark.parametrize(
    ("changes", "until_decided"),
    [({}, True), ({"budget": Seconds(9)}, True), ({"blocks": 9}, False), ({"target": Share("2%")}, False)],
)
def test_several_contestants_race_until_decided_unless_something_else_is_asked_for(
    changes: dict[str, Any], until_decided: bool
) -> None:
    plan = plan_of(request(contestants=Contestants("torch,jax"), **changes))
    assert plan.until_decided == until_decided


def test_data_seeds_take_turns_unless_one_is_asked_for() -> None:
    assert plan_of(request(blocks=6)).data_seeds == (0, 1, 2)
    assert plan_of(request(blocks=6, data_seed=7)).data_seeds == (7,)


def test_a_race_to_a_score_has_five_data_seeds_before_it_may_claim_anything() -> None:
    pytest.importorskip("sklearn", reason="`make test` installs it and runs this")
    learning = request(models=("digits",), mode="train", to_score=Share("90%"), contestants=Contestants("torch,jax"))
    plan = plan_of(learning)
    first = plan.blocks[: possible_looks(len(plan.blocks))[0]]
    assert {block.data_seed for block in first} == {0, 1, 2, 3, 4}
    assert first[0].data_seed == first[1].data_seed
    assert plan_of(msgspec.structs.replace(learning, data_seed=7)).data_seeds == (7,)
    few = plan_of(msgspec.structs.replace(learning, blocks=4, threads=1))
    assert "--to-score 0.9" in command_of(few)
    assert "--data-seed" not in command_of(few)


GOOD = 'models = ["mlp"]\ncontestants = ["python"]\n'


def test_values_are_parsed_when_the_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "race.toml"
    file.write_text(GOOD + "target = '1%'\nbudget = '10m'\nseconds = '500ms'\ndevice = 'cuda'\noutput = ['a.md']\n")
    read = read_request(file)
    assert (read.target, read.budget, read.seconds) == (Share(0.01), Seconds(600), Seconds(0.5))
    assert read.device == Devices("cuda")
    assert (read.output, read.contestants[0].framework) == ((Path("a.md"),), "python")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('contestants = ["jax"]\n', "models is missing"),
        ('models = []\ncontestants = ["jax"]\n', "models: "),
        ('models = ["mpl"]\ncontestants = ["jax"]\n', "mpl"),
        ('models = ["mlp"]\ncontestants = ["torhc"]\n', "torhc"),
        ('models = ["mlp"]\ncontestants = ["jax", "jax"]\n', "contestants: "),
        (GOOD + "blokcs = 3\n", "did you mean blocks?"),
        (GOOD + "modle = 'mlp'\n", "did you mean models?"),
        (GOOD + "moed = 'train'\n", "did you mean mode?"),
        (GOOD + "thread = 1\n", "did you mean threads?"),
        (GOOD + "blocks = 0\n", "blocks: "),
        (GOOD + "blocks = 100_000_000\n", "blocks: "),
        (GOOD + "threads = 100000\n", "threads"),
        (GOOD + "batch = [1,\n 0]\n", "batch"),
        (GOOD + "batch = []\n", "batch: "),
        (GOOD + "batch = '8'\n", "batch: "),
        (GOOD + "mode = ['infer', 'learn']\n", "mode[1]: 'learn'"),
        (GOOD + "conditions = 'quiet'\n", "as-found, controlled"),
        (GOOD + "target = '200%'\n", "target: '200%'"),
        (GOOD + "budget = 'soon'\n", "budget: 'soon'"),
        (GOOD + "seconds = 0\n", "seconds: "),
        (GOOD + "seconds = nan\n", "seconds: "),
        (GOOD + "device = 'gpu'\n", "device: 'gpu'"),
        (GOOD + "baseline = 'jax'\n", "jax"),
        (GOOD + "price = 'cheap'\n", "cheap"),
        (GOOD + "output = ['/nowhere/a.csv']\n", "/nowhere/a.csv"),
        (GOOD + "output = ['a.xyz']\n", "a.xyz"),
        (GOOD + "blocks 3\n", "line 3"),
    ],
)
def test_an_error_in_a_request_file_names_the_key_or_the_value(
    text: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "race.toml").write_text(text)
    assert value in str(refusal("compare", tmp_path / "race.toml"))


def test_options_on_the_command_line_win(tmp_path: Path) -> None:
    (tmp_path / "RACE.TOML").write_text(GOOD + "blocks = 3\nseed = 5\nmode = 'grad'\n")
    wanted = ("compare", tmp_path / "RACE.TOML", "--blocks", "2", "--mode", "infer,grad", "--dry-run", "--json")
    plan = json.loads(output(*wanted))
    assert plan["seed"] == 5
    assert sorted(plan["works"][block["work"]]["mode"] for block in plan["blocks"]) == 2 * ["grad"] + 2 * ["infer"]
    assert refusal("compare", "mlp", tmp_path / "RACE.TOML").code == "E_REQUEST"
    assert refusal("compare", tmp_path / "none.toml").code == "E_TOML"


def test_output_files_are_checked_before_the_race(tmp_path: Path) -> None:
    assert [(path.name, chosen.name) for path, chosen in writable([tmp_path / "a.md"])] == [("a.md", "md")]
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    (tmp_path / "elsewhere.csv").symlink_to(tmp_path / "none" / "a.csv")
    too_long = 250 * "x" + ".csv"
    for paths in (["folder.csv"], ["loop.csv"], ["none/a.csv"], ["a.csv", "./a.csv"], ["elsewhere.csv"], [too_long]):
        with pytest.raises(InvalidRequest) as refused:
            writable([tmp_path / path for path in paths])
        assert refused.value.code == "E_FILE"


@pytest.mark.slow
def test_rows_are_written_also_after_an_interruption(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "two_callables.py", tmp_path)
    calls = "python:call=two_callables.sort_shuffled,python:call=two_callables.sort_reversed"
    race = subprocess.Popen(
        [sys.executable, "-m", "fairlap", "compare", "callable", "--on", calls, "--blocks", "200", "--seconds", "0.01",
         "-o", "rows.csv", "-o", "rows.md"],
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


@pytest.mark.slow
def test_one_file_that_cannot_be_written_does_not_lose_the_other(tmp_path: Path) -> None:
    full = tmp_path / "full.csv"
    full.symlink_to("/dev/full")
    shutil.copy(EXAMPLES / "two_callables.py", tmp_path)
    done = fairlap(
        "compare", "callable", "--on", "python:call=two_callables.sort_shuffled", "--blocks", "1", "--seconds", "0.01",
        "-o", full, "-o", "rows.md", "--price", "1/h", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1
    assert "[E_FILE]" in done.stderr
    assert (tmp_path / "rows.md").exists()
    assert done.stdout.startswith("callables · cpu")


def test_models_joined_by_a_comma_are_refused_with_how_to_race_both() -> None:
    with pytest.raises(InvalidRequest, match="mlp digits"):
        plan_of(request(models=("mlp,digits",)))
