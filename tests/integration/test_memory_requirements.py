"""Memory that is known by construction, and as wait4 counts it by hand, decides a gate."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from statistics import median_low

import pytest
from command_line import invoke

PASSED, EXCEEDED = 0, 1
RACE = ("--blocks", "7", "--seconds", "0.02", "--conditions", "as-found", "--threads", "1", "--quiet")
MODEL = """
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048) for _ in range(12)))
copy = {copy}
x = torch.ones(1, 2048)


def run():
    with torch.no_grad():
        return float(model(x).sum())
"""
WEIGHTS = 12 * (2048 * 2048 + 2048) * 4


_PEAK = """
import os, sys

pytestmark = pytest.mark.slow
child = os.fork()
if not child:
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    os.execvp(sys.argv[1], sys.argv[1:])
_, status, used = os.wait4(child, 0)
print(used.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "store.sqlite"))
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)


def peak_by_hand(words: list[str], folder: Path | None = None) -> int:
    """Take the median of five runs by the kernel's account of each ended process, as GNU time prints it.

    They are started by a small process, since Linux counts the memory of what starts a program as the program's own.
    """
    runs = (
        subprocess.run([sys.executable, "-ISc", _PEAK, *words], cwd=folder, check=True, capture_output=True)
        for _ in range(5)
    )
    return median_low(int(run.stdout) * 1024 for run in runs)


def test_a_program_that_holds_a_fifth_more_is_found_with_the_ratio_counted_by_hand() -> None:
    """A program that nobody here made: dd holds one block of the size that it is given."""
    commands = {
        name: f"dd if=/dev/zero of=/dev/null count=1 bs={mib}M" for name, mib in (("base", 100), ("change", 120))
    }
    by_hand = {name: peak_by_hand(shlex.split(text)) for name, text in commands.items()}
    assert by_hand["change"] - by_hand["base"] == pytest.approx(20 << 20, rel=0.02)
    given = [word for name, text in commands.items() for word in ("--command", f"{name}={text}")]
    done = invoke("compare", *given, *RACE, "--no-store", "-o", "run.json")
    assert done.exit_code == 0, done.output
    true_ratio = by_hand["change"] / by_hand["base"]
    for allowed, status in ((2, EXCEEDED), (15, EXCEEDED), (25, PASSED)):
        gated = invoke(
            "gate", "run.json", "--baseline", "base", "--max-slowdown", "1000%", "--require",
            f"memory_peak<=+{allowed}%", "--json",
        )  # fmt: skip
        found = json.loads(gated.stdout)["findings"][1]
        assert (gated.exit_code, found["ratio"]) == (status, pytest.approx(true_ratio, rel=0.01))


def test_a_second_copy_of_a_models_weights_fails_a_pull_request(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="`make test-slow` installs it and runs this")
    folders = {"base": "None", "change": "[each.detach().clone() for each in model.parameters()]"}
    for side, copy in folders.items():
        (tmp_path / side).mkdir()
        (tmp_path / side / "bench.py").write_text(MODEL.format(copy=copy))
    words = [sys.executable, "-c", "import bench; bench.run()"]
    by_hand = {side: peak_by_hand(words, tmp_path / side) for side in folders}
    assert by_hand["change"] - by_hand["base"] == pytest.approx(WEIGHTS, rel=0.05)
    os.chdir(tmp_path / "change")
    Path("gate.toml").write_text('max_slowdown = "100%"\nrequire = ["memory_peak<=+2%"]\n')
    race = ("--call", "bench.run", "--threads", "1", "--budget", "120s", "--no-comment")
    done = invoke("pull-request", *race, "--base", str(tmp_path / "base"), "-o", str(tmp_path / "run.json"))
    assert done.exit_code == EXCEEDED, done.output
    gated = invoke("gate", str(tmp_path / "run.json"), "--baseline", "base", "--json")
    found = json.loads(gated.stdout)["findings"][1]
    held = found["ratio"] - 1
    assert held == pytest.approx(WEIGHTS / by_hand["base"], rel=0.15)


def test_the_same_model_on_both_sides_passes(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="`make test-slow` installs it and runs this")
    for side in ("base", "change"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "bench.py").write_text(MODEL.format(copy="None"))
    os.chdir(tmp_path / "change")
    given = ("--call", "bench.run", "--threads", "1", "--blocks", "7", "--max-slowdown", "1000%", "--no-comment")
    done = invoke("pull-request", *given, "--require", "memory_peak<=+2%", "--strict", "--base", str(tmp_path / "base"))
    assert done.exit_code == PASSED, done.output
