"""The example of a C++ function that XLA calls takes as long as by hand, and is refused where it answers wrong."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import fairlap

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
EXAMPLE = Path(__file__).parents[2] / "docs/examples/xla"
COMMAND = (
    "time", "xla_call:in_cpp", "xla_call:by_jax", "--inputs", "xla_call:draw", "--reference", "xla_call:exact",
    "--budget", "2s", "--json",
)  # fmt: skip
BY_HAND = """
import time, numpy, xla_call
x, y = xla_call.draw(numpy.random.default_rng(1))
times = []
for _ in range(2000):
    began = time.perf_counter()
    xla_call.in_cpp(x, y)
    times.append(time.perf_counter() - began)
print(numpy.median(times) * 1e9)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("jax", reason="`make test-slow` installs it and runs this")
    if shutil.which("g++") is None:
        pytest.skip("the example is compiled with g++; `make test-slow` runs this where it is installed")
    for file in EXAMPLE.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    return tmp_path


def raced(folder: Path) -> tuple[int, dict[str, Any]]:
    done = fairlap(*COMMAND, cwd=folder, timeout_s=300)
    return done.returncode, json.loads(done.stdout)


def test_it_takes_as_long_as_a_loop_by_hand_and_answers_are_compared(folder: Path) -> None:
    for _ in range(3):  # the machine may be busy
        by_hand = subprocess.run(
            [sys.executable, "-c", BY_HAND], cwd=folder, capture_output=True, text=True, check=True
        )
        status, found = raced(folder)
        assert (status, found["answers"]["wrong"]) == (0, {})
        [own] = [each for each in found["rows"] if each["name"] == "xla_call:in_cpp"]
        if 0.8 < own["median_ns"] / float(by_hand.stdout) < 1.25:
            return
    pytest.fail(f"{own['median_ns']} ns, by hand {by_hand.stdout}")


def test_one_that_answers_wrong_is_not_ranked(folder: Path) -> None:
    source = folder / "xla_call.cc"
    text = source.read_text()
    assert "a * from[each]" in text
    source.write_text(text.replace("a * from[each]", "from[each]"))
    status, found = raced(folder)
    assert status == 1
    assert [(name, each["code"]) for name, each in found["answers"]["wrong"].items()] == [
        ("xla_call:in_cpp", "E_OUTPUT")
    ]
