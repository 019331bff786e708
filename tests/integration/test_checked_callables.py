"""Callables race in processes of their own, and those that answer wrong, or not by computing, are not ranked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fairlap
import pytest
from command_line import invoke, output, refusal
from fairlap.render.plan_command import command_of
from fairlap.store.runs.run_file import load_run

pytestmark = pytest.mark.slow

KERNELS = """
import time

import numpy as np

def draw(rng, n=4000):
    return rng.standard_normal((n, 16), np.float32), rng.standard_normal(16).astype(np.float32)

def ref(x, w): return np.tanh(x @ w)
def summed(x, w): return np.tanh((x * w).sum(axis=1))

def edge(x, w):
    found = ref(x, w)
    found[-1] = found[-2]
    return found

def transposed(x, w): return ref(x.reshape(16, -1).T, w)
def constant(x, w): return np.zeros(len(x), np.float32)

calls = []
def stale(x, w):
    calls.append(ref(x, w))
    return calls.pop(0) if len(calls) > 1 else calls[0]

known = {}
def by_place(x, w):
    if x.ctypes.data not in known:
        known[x.ctypes.data] = ref(x, w)
    return known[x.ctypes.data]

def by_content(x, w):
    key = hash(x[:2].tobytes())
    if key not in known:
        began = time.perf_counter()
        while time.perf_counter() - began < 0.02:
            known[key] = ref(x, w)
    return known[key]

first = []
def of_the_first_seeds(x, w):
    key = x[:2].tobytes()
    if len(first) < 2 and key not in first:
        first.append(key)
    return ref(x, w) if key in first else np.ones(len(x), np.float32)

def later(x, w):
    import concurrent.futures
    return concurrent.futures.Future()

def writing(x, w):
    found = ref(x, w)
    w[:] = 0
    return found

def raising(x, w): raise ValueError("no kernel for this")
"""
RACE = ("--blocks", 1, "--seconds", 0.05, "--threads", 1, "--conditions", "as-found", "--quiet", "--no-store")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "mine"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels.py").write_text(KERNELS)
    return tmp_path


def on(*names: str) -> tuple[str, str, str]:
    return "callable", "--on", ",".join(f"python:call=kernels.{name}" for name in names)


CHECKED = ("--reference", "kernels:ref", "--inputs", "kernels:draw")


def rows(*arguments: object) -> dict[str, dict[str, Any]]:
    done = invoke("compare", *arguments, *RACE, "--json")
    assert done.exit_code == 0, done.stderr
    return {row["contestant"].rpartition(".")[2]: row for row in json.loads(done.stdout)["rows"]}


def test_right_ones_are_ranked_and_wrong_ones_disqualified(here: Path) -> None:
    expected = {
        "ref": "", "summed": "", "edge": "E_OUTPUT", "transposed": "E_OUTPUT", "constant": "E_OUTPUT",
        "stale": "E_STALE_ANSWER", "by_place": "E_STALE_ANSWER", "by_content": "E_KEPT_ANSWERS",
        "of_the_first_seeds": "E_OUTPUT", "later": "E_DEFERRED_WORK", "writing": "E_ARGUMENT_CHANGED",
        "raising": "E_EXCEPTION",
    }  # fmt: skip
    found = rows(*on(*expected), *CHECKED)
    codes = {name: row["code"] for name, row in found.items()}
    assert codes == expected
    assert {row["outcome"] for row in found.values() if row["code"] not in ("", "E_EXCEPTION")} == {"disqualified"}
    assert found["ref"]["answers"] == found["summed"]["answers"] == "agree with kernels:ref"
    assert found["edge"]["answers"] == "compared with kernels:ref"
    assert {name for name, row in found.items() if row["judged"] is not None} >= {"ref", "summed"}
    assert found["edge"]["judged"] is None
    assert found["summed"]["error_relative"] < 1e-6


def test_without_a_reference_the_first_one_serves_and_the_others_are_said_to_agree_with_it(here: Path) -> None:
    found = rows(*on("summed", "ref", "edge"), "--inputs", "kernels:draw", "--dims", "n=50")
    assert [row["code"] for row in found.values()] == ["", "", "E_OUTPUT"]
    assert found["ref"]["answers"] == "agree with each other"
    assert found["edge"]["answers"] == "compared with each other"
    assert found["ref"]["workload"] == "callable[kernels:draw,n=50]"


@pytest.mark.parametrize(
    "contestants", [("callable", "--on", "python:call=time.time,python:call=time.monotonic"),
                    ("--command", "a=true", "--command", "b=true")]
)  # fmt: skip
def test_a_ratio_never_stands_without_saying_that_answers_were_not_compared(
    contestants: tuple[str, ...], here: Path
) -> None:
    race = ["--blocks", 2, *RACE[2:-2], "--no-store"]
    shown = output("compare", *contestants, *race, "-o", "race.json", "-o", "race.md", "-o", "race.html")
    assert "answers not compared" in shown
    for file in ("race.md", "race.html"):
        assert "answers not compared" in (here / file).read_text(), file
    [verdict] = [line for line in (here / "race.md").read_text().splitlines() if "times as long as" in line]
    assert "answers not compared" in verdict
    assert {row["answers"] for row in json.loads((here / "race.json").read_text())["rows"]} == {"answers not compared"}


def test_two_checkouts_are_compared_by_the_reference_of_the_current_folder(here: Path) -> None:
    for folder, body in (("base", "x @ w"), ("head", "x @ w + 1e-3")):
        (here / folder).mkdir()
        (here / folder / "kernels.py").write_text(
            f"import numpy as np\ndef run(x, w): return np.tanh({body})\n"
            "def ref(x, w): raise SystemError\ndef draw(rng): raise SystemError\n"
        )
    names = ",".join(f"python:call=kernels.run:path={folder}" for folder in ("base", "head"))
    done = rows("callable", "--on", names, *CHECKED)
    assert [row["code"] for row in done.values()] == ["", "E_OUTPUT"]
    agreeing = rows("callable", "--on", names, "--inputs", "kernels:draw")
    assert [row["code"] for row in agreeing.values()] == ["", "E_OUTPUT"]
    assert {row["answers"] for row in agreeing.values()} == {"agree with each other", "compared with each other"}


def test_from_python_a_request_file_and_again_from_its_run(here: Path) -> None:
    asked = {"reference": "kernels:ref", "inputs": "kernels:draw", "dims": {"n": 60}, "blocks": 1, "seconds": 0.05}
    found = fairlap.compare("callable", on=["python:call=kernels.ref", "python:call=kernels.edge"], threads=1, **asked)
    assert [row.code for row in found.rows] == ["", "E_OUTPUT"]
    (here / "race.toml").write_text(
        'models = ["callable"]\ncontestants = ["python:call=kernels.summed", "python:call=kernels.edge"]\n'
        'reference = "kernels:ref"\ninputs = "kernels:draw"\ndims = "n=60"\nblocks = 1\nseconds = 0.05\nthreads = 1\n'
    )
    assert invoke("compare", "race.toml", "--quiet", "-o", "race.json").exit_code == 0
    [run] = json.loads(output("runs", "--json", "--limit", "1"))["runs"]
    plan = load_run(here / "race.json").plan
    assert command_of(plan).startswith(
        "fairlap compare callable --on python:call=kernels.summed,python:call=kernels.edge"
    )
    assert "--reference kernels:ref" in command_of(plan)
    assert invoke("rerun", run["run"], "--quiet", "-o", "again.json").exit_code == 0
    for file in ("race.json", "again.json"):
        rows = json.loads((here / file).read_text())["rows"]
        assert [(row["code"], row["answers"]) for row in rows] == [
            ("", "agree with kernels:ref"),
            ("E_OUTPUT", "compared with kernels:ref"),
        ]


def test_a_plan_with_a_reference_of_somebody_else_runs_nothing_without_trust(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The contestants and what draws are allowed here; only the reference is another."""
    (here / "evil.py").write_text(f"open({str(here / 'PWN')!r}, 'w')\ndef ref(x, w): return x @ w\n")
    (here / "elsewhere").mkdir()
    output("compare", *on("ref", "summed"), *CHECKED, *RACE, "--dry-run", "--save-plan", "mine.json")
    assert invoke("compare", "--plan", "mine.json", "--no-store", "--dry-run").exit_code == 0
    text = (here / "mine.json").read_text()
    (here / "theirs.json").write_text(text.replace("callable:kernels:ref", "callable:evil:ref"))
    done = invoke("compare", "--plan", "theirs.json", "--no-store", "--quiet")
    assert getattr(done.exception, "code", "") == "E_PLAN_TRUST"
    assert f'reference "evil:ref" in "{here}"' in done.stderr
    assert not (here / "PWN").exists()
    for changed in ({"inputs": "evil:ref"}, {"checkout": str(here / "elsewhere")}, {"folder": str(here / "elsewhere")}):
        plan = json.loads(text)
        plan["works"][0]["source"] |= changed
        (here / "theirs.json").write_text(json.dumps(plan))
        assert refusal("compare", "--plan", "theirs.json", "--no-store").code == "E_PLAN_TRUST", changed
    assert not (here / "PWN").exists()
    assert refusal("compare", "--plan", "theirs.json", "--no-store", "--trust").code == "E_REFERENCE"  # it is not there


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((*on("ref"), "--reference", "kernels:ref"), "E_REFERENCE"),
        ((*on("ref"), "--inputs", "kernels.draw"), "E_REFERENCE"),
        ((*on("ref"), "--inputs", "inputs.npz"), "E_REFERENCE"),
        ((*on("ref"), "--inputs", "kernels:no_such"), "E_REFERENCE"),
        ((*on("ref"), "--inputs", "kernels:draw", "--reference", "no_such_module:ref"), "E_REFERENCE"),
        ((*on("ref"), *CHECKED, "--command", "a=true"), "E_REFERENCE"),
        ((*on("ref"), *CHECKED, "--batch", 4), "E_SHAPES"),
        ((*on("ref"), *CHECKED, "--dims", "m=4"), "E_MODEL_DIMENSIONS"),
        ((*on("ref"), "--inputs", "kernels:draw", "--sandbox"), "E_SANDBOX"),
        (("mlp", "--on", "torch", "--reference", "kernels:ref"), "E_REFERENCE"),
    ],
)
def test_what_cannot_be_checked_is_refused_with_a_code(arguments: tuple[object, ...], code: str, here: Path) -> None:
    assert refusal("compare", *arguments, *RACE).code == code
