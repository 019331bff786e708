"""What ``fairlap choose`` refuses, in one line with a code and before anything is raced."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import fairlap
import numpy as np
import pytest
from command_line import invoke, refusal
from fairlap.choice import choose as module
from fairlap.errors import FairlapError
from fairlap.race.planning.plan import Plan
from planted_choice import NAMES, a_plan, raced

DATA = ("--inputs", "x.npy", "--labels", "y.npy")
TWO = ("choose", "a.onnx", "b.onnx", "--on", "onnxruntime")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([*TWO, "--metric", "top1", "--inputs", "x.npy"], "E_METRIC"),  # no labels
        ([*TWO, *DATA], "E_METRIC"),  # no metric
        ([*TWO, *DATA, "--metric", "top1,top5"], "E_METRIC"),
        ([*TWO, *DATA, "--metric", "top1", "--minimise", "cost"], "E_CHOOSE"),  # no price
        ([*TWO, *DATA, "--metric", "top1", "--require", "top1>=90GB"], "E_REQUIRE"),
        (["choose", "mlp", "convnet", "--on", "torch", *DATA, "--metric", "top1"], "E_METRIC"),  # not the user's own
    ],
)
def test_a_choice_that_cannot_be_made_is_refused(arguments: list[str], code: str) -> None:
    assert refusal(*arguments).code == code


@pytest.mark.parametrize(
    ("options", "code"),
    [({"minimise": "weight"}, "E_CHOOSE"), ({"use": "edge"}, "E_CHOOSE"), ({"metric": ("top1", "f1")}, "E_METRIC")],
)
def test_python_refuses_what_a_choice_does_not_answer(options: dict[str, object], code: str) -> None:
    given = {"inputs": "x.npy", "labels": "y.npy", "metric": "top1", **options}
    with pytest.raises(FairlapError) as error:
        fairlap.choose(["a.onnx", "b.onnx"], on="onnxruntime", **given)  # type: ignore[arg-type]
    assert error.value.code == code


class InterruptedRace:
    """Stands in for a race of planted models that Ctrl-C ends after so many processes."""

    after = 0

    def __init__(self, plan: Plan, _progress: object, _ending: object) -> None:
        processes, items = raced(plan)
        self.processes = processes[: self.after]
        self.scores = SimpleNamespace(items=items)
        self.ended_early = ""

    def run(self) -> None:
        raise KeyboardInterrupt

    def shares(self) -> dict[str, float]:
        return {"whole": 1.0}


@pytest.mark.parametrize(
    ("rounds", "processes", "recommended"),
    [(0, 2, 0), (1, 1, len(NAMES)), (11, 2, 1), (12, 0, 1)],  # of one round no candidates are separated
)
def test_ctrl_c_keeps_what_was_measured_and_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rounds: int, processes: int, recommended: int
) -> None:
    monkeypatch.setattr(module, "_planned", lambda request, notify: a_plan("torch", 12))
    monkeypatch.setattr(module, "Race", InterruptedRace)
    monkeypatch.setattr(InterruptedRace, "after", rounds * len(NAMES) + processes)
    file = tmp_path / "choice.json"
    found = invoke(*TWO, *DATA, "--metric", "top1", "--minimise", "time", "-q", "-o", file, "--json")
    assert found.exit_code == 130, found.output
    document = json.loads(file.read_text())
    assert document == json.loads(found.stdout)
    assert (document["interrupted"], document["exit_status"]) == (True, 130)
    assert len(document["recommended"]) == recommended
    assert len(document["candidates"]) == min(len(NAMES), rounds * len(NAMES) + processes)
    assert f"interrupted after {document['blocks']} complete round" in found.stderr
    assert document["blocks"] <= rounds


def test_ctrl_c_before_the_first_process_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_planned", lambda request, notify: a_plan("torch", 12))
    monkeypatch.setattr(module, "Race", InterruptedRace)
    found = invoke(*TWO, *DATA, "--metric", "top1", "-q", "-o", tmp_path / "choice.json")
    assert (found.exit_code, found.stdout) == (130, "")
    assert "nothing was decided" in found.stderr


@pytest.mark.slow
def test_a_model_whose_outputs_have_another_form_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnx", reason="`make test` installs it and runs this")
    from dense_network import save_network

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    drawn = np.random.default_rng(0)
    for name, classes in (("four", 4), ("two", 2)):
        hidden, output = drawn.normal(size=(64, 8)), drawn.normal(size=(8, classes))
        save_network(tmp_path / f"{name}.onnx", (hidden, np.zeros(8), output, np.zeros(classes)))
    np.save(tmp_path / "x.npy", drawn.normal(size=(8, 64)).astype(np.float32))
    np.save(tmp_path / "y.npy", np.full(8, 3))
    options = (*DATA, "--metric", "top1", "--on", "onnxruntime", "--batch", 4)
    found = refusal("choose", "four.onnx", "two.onnx", *options)
    assert found.code == "E_METRIC"
    assert str(found).startswith("two.onnx: ")
    assert refusal("choose", "four.onnx", *options).code == "E_CHOOSE"
