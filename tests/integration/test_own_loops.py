"""Loops of training that a user wrote race as they are: the weights after some steps are compared with a reference."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import fairlap as run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PAGE = Path(__file__).parents[2] / "docs/how-to/train-your-own-model.md"
LOOPS = """
import numpy as np
import torch


def loop(rate=0.1, **options):
    def train(weight, x, y):
        held = torch.tensor(weight, requires_grad=True)
        optimizer = torch.optim.SGD([held], lr=rate, **options)
        for rows, values in zip(torch.as_tensor(x), torch.as_tensor(y)):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(rows @ held, values).backward()
            optimizer.step()
        return held.detach().numpy()

    return train


in_torch, faster, with_decay = loop(), loop(0.11), loop(weight_decay=1e-3)


def in_numpy(weight, x, y):
    for rows, values in zip(x, y):
        weight = weight - np.float32(0.2 / len(rows)) * (rows.T @ (rows @ weight - values))
    return weight


def one_step_short(weight, x, y):
    return in_torch(weight, x[:-1], y[:-1])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the reference of the page that shows this, and loops beside it."""
    pytest.importorskip("torch", reason="`make test` installs it and runs this")
    [page] = [each for each in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "def by_hand" in each]
    (tmp_path / "loops.py").write_text(page.rpartition("\n\n\n")[0] + LOOPS)
    return tmp_path


def raced(folder: Path, *names: str) -> dict[str, dict[str, Any]]:
    on = ",".join(f"python:call=loops.{name}" for name in names)
    options = ("--reference", "loops:by_hand", "--inputs", "loops:draw", "--blocks", 1, "--seconds", "0.1s", "--json")
    done = run("compare", "callable", "--on", on, *options, "--no-store", "--quiet", "--threads", 1, cwd=folder)
    assert "Traceback" not in done.stderr
    rows = json.loads(done.stdout)["rows"]
    return {row["contestant"].rpartition(".")[2]: row for row in rows}


def test_loops_that_end_at_the_same_weights_are_raced(folder: Path) -> None:
    for row in raced(folder, "in_torch", "in_numpy").values():
        assert row["outcome"] == "finished", row["message"]


@pytest.mark.parametrize("wrong", ["faster", "with_decay", "one_step_short"])
def test_a_loop_that_trains_otherwise_is_disqualified(wrong: str, folder: Path) -> None:
    rows = raced(folder, "in_torch", wrong)
    assert rows["in_torch"]["outcome"] == "finished"
    assert (rows[wrong]["outcome"], rows[wrong]["code"]) == ("disqualified", "E_OUTPUT")
