"""``fairlap judge`` from beginning to end: callables and programs in two folders, in fresh processes."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest
from command_line import fairlap
from fairlap.judgement.judgement import Judgement
from fairlap.judgement.ledger import read_ledger

pytestmark = pytest.mark.slow

LOOP = "def fn():\n    total = 0\n    for each in range({steps}):\n        total += each\n    return total\n"
PROGRAM = "#!/bin/sh\nsleep {seconds}\necho {answer}\n"


@pytest.fixture
def sides(tmp_path: Path) -> Path:
    for name, steps, seconds, answer in (
        ("base", 13_000, 0.013, 42),
        ("faster", 10_000, 0.005, 42),
        ("wrong", 1, 0, 41),
    ):
        (tmp_path / name / "pk").mkdir(parents=True)
        (tmp_path / name / "pk" / "hot.py").write_text(LOOP.format(steps=steps))
        (tmp_path / name / "run").write_text(PROGRAM.format(seconds=seconds, answer=answer))
        (tmp_path / name / "run").chmod(0o755)
    return tmp_path


def judged(sides: Path, change: str, *options: object) -> Judgement:
    done = fairlap(
        "judge", "--base", "base", "--change", change, "--threads", 1, "--seconds", "100ms", "--json", "-q", *options,
        cwd=sides,
    )  # fmt: skip
    found = msgspec.json.decode(done.stdout, type=Judgement)
    assert done.returncode == found.exit_status
    return found


def test_a_callable_that_is_30_percent_faster_is_kept_and_an_equal_one_is_not(sides: Path) -> None:
    kept = judged(sides, "faster", "--call", "pk.hot:fn", "--ledger", "tries.json", "--tests", "test -f run")
    assert (kept.decision, kept.reason, kept.exit_status) == ("keep", "faster", 0)
    assert kept.speedup == pytest.approx(1.3, rel=0.1)
    (sides / "copy").mkdir()
    (sides / "copy" / "pk").mkdir()
    (sides / "copy" / "pk" / "hot.py").write_text(LOOP.format(steps=13_000))
    equal = judged(sides, "copy", "--call", "pk.hot:fn", "--ledger", "tries.json", "--budget", "25s", "--gain", "10%")
    assert equal.decision in ("discard", "undecided")
    assert equal.try_number == 2
    assert [each.outcome for each in read_ledger(sides / "tries.json").tries] == ["keep", equal.decision]


def test_a_faster_program_is_kept_and_one_that_prints_something_else_is_discarded(sides: Path) -> None:
    options = ("--command", "./run", "--same-output")
    assert judged(sides, "faster", *options).decision == "keep"
    wrong = judged(sides, "wrong", *options)
    assert (wrong.decision, wrong.reason, wrong.code) == ("discard", "wrong_answers", "E_OUTPUT")


CHECKS = "def draw(rng, n=64):\n    return (rng.standard_normal(n),)\n\n\ndef truth(x):\n    return x * 2 + 1\n"
KERNEL = "def fn(x):\n    for _ in range(2000):\n        pass\n    return x * 2 + {constant}\n"


@pytest.mark.parametrize("reference", [(), ("--reference", "my_checks:truth")])
def test_a_callable_that_answers_wrong_is_discarded(sides: Path, reference: tuple[str, ...]) -> None:
    (sides / "my_checks.py").write_text(CHECKS)
    for name, constant in (("base", 1), ("wrong", 1.01)):
        (sides / name / "pk" / "kernel.py").write_text(KERNEL.format(constant=constant))
    wrong = judged(sides, "wrong", "--call", "pk.kernel:fn", "--inputs", "my_checks:draw", *reference)
    assert (wrong.decision, wrong.reason, wrong.code) == ("discard", "wrong_answers", "E_OUTPUT")


USES = "import subprocess, sys, time\nfilled = b'x' * ({mib} << 20)\n{work}\n"
BURNS = "subprocess.run([sys.executable, '-ISc', 'import time\\nwhile time.process_time() < {seconds}: pass'])"


def test_memory_and_cpu_time_of_programs_decide_where_they_are_asked_for(sides: Path) -> None:
    """The change holds 10 % less, and waits where the base's child computes; both take as long."""
    for name, mib, work in (("base", 110, BURNS.format(seconds=0.05)), ("faster", 100, "time.sleep(0.08)")):
        (sides / name / "uses.py").write_text(USES.format(mib=mib, work=work))
    options = ("--command", f"{sys.executable} -IS uses.py")
    memory = judged(sides, "faster", *options, "--quantity", "memory_peak", "--gain", "2%")
    assert (memory.decision, memory.quantity) == ("keep", "memory_peak")
    assert memory.speedup == pytest.approx(1.09, abs=0.01)  # with about 10 MiB of the interpreter on either side
    assert (
        judged(sides, "faster", *options, "--quantity", "memory_peak", "--gain", "20%").reason == "not_faster_by_gain"
    )
    cpu = judged(sides, "faster", *options, "--quantity", "cpu_time", "--gain", "20%")
    assert (cpu.decision, cpu.quantity) == ("keep", "cpu_time")
    assert cpu.speedup is not None
    assert cpu.speedup > 1.5


ARRAYS = "import numpy as np\n\n\ndef fn():\n    return np.ones({mib} << 17).sum()\n"


def test_the_memory_of_a_callable_is_that_of_its_process(sides: Path) -> None:
    for name, mib in (("base", 200), ("faster", 100)):
        (sides / name / "pk" / "arrays.py").write_text(ARRAYS.format(mib=mib))
    found = judged(sides, "faster", "--call", "pk.arrays:fn", "--quantity", "memory_peak", "--gain", "10%")
    assert found.decision == "keep"
    assert found.speedup is not None
    assert 1.2 < found.speedup < 1.9  # the interpreter, NumPy and fairlap are in both
