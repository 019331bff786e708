"""No exploit is ranked, every honest callable is, and what an exploit does to its own process changes no figure."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from command_line import invoke
from fairlap.errors import InvalidRequest
from fairlap.machine.programs.sandbox import has_seccomp, landlock_version
from fairlap.scenarios.callables.untrusted import process
from fairlap.scenarios.callables.untrusted.arms import Arm
from fairlap.scenarios.callables.untrusted.race import compare_untrusted

from .hostile.cases import EXPLOITS, HERE, HONEST, codes, exploits, honest

pytestmark = pytest.mark.skipif(
    not (landlock_version() and has_seccomp()), reason="needs Linux with Landlock and seccomp"
)

REFERENCE, INPUTS = f"{HERE}/task.py:reference", f"{HERE}/task.py:draw"
PLAIN = f"{HERE}/honest/arrays.py:plain"
FOLDERS = {
    folder: list(names) for folder, names in itertools.groupby(EXPLOITS, key=lambda name: name.partition("/")[0])
}
QUICK = [
    "answers/zeros",
    "caches/by_shape",
    "caches/works_ahead",
    "deferred/before_the_last",
    "deferred/loop_without_calls",
    "machine/closes_descriptors",
    "memory/forges_states",
    "memory/writes_inputs",
    "processes/forked_helper",
    "referee/reads_the_task",
]
LOOT = Path("/tmp/fairlap-hostile-was-here")


def judged_wrongly(names: list[str], blocks: int) -> dict[str, str]:
    *found, plain = exploits(names, blocks=blocks, limit_s=20.0)
    assert not plain.code, plain
    assert plain.checked > 0
    assert not LOOT.exists()
    pairs = zip(names, found, strict=True)
    return {name: each.code or "ranked" for name, each in pairs if each.code not in codes(name)}


def test_there_are_at_least_forty_exploits_and_twenty_honest_callables() -> None:
    assert len(EXPLOITS) >= 40
    assert sum(len(names.split()) for _, names, *_ in HONEST) >= 20


def test_exploits_find_what_they_attack_wherever_it_is() -> None:
    """The descriptors of a contestant have the numbers of the parent's, which has as many open as it likes."""
    with ExitStack() as opened:
        for _ in range(70):
            opened.enter_context(Path(os.devnull).open("rb"))
        names = ["deferred/early_ring", "deferred/rings_ahead", "machine/replaces_descriptors"]
        assert judged_wrongly(names, blocks=2) == {}


def test_one_exploit_of_each_folder_is_excluded() -> None:
    cores, priority = os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)
    assert judged_wrongly(QUICK, blocks=3) == {}
    assert (os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)) == (cores, priority)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("folder", FOLDERS)
def test_every_exploit_is_excluded(folder: str) -> None:
    assert judged_wrongly(FOLDERS[folder], blocks=12) == {}


@pytest.mark.slow
@pytest.mark.parametrize("case", HONEST, ids=lambda case: f"{case[0]}-{case[3].rpartition(':')[2]}")
def test_every_honest_callable_is_ranked(case: tuple[str, str, str, str]) -> None:
    assert {each.name: each.reason for each in honest(case, blocks=6) if each.code} == {}


def test_clocks_that_a_callable_stops_change_no_figure(tmp_path: Path) -> None:
    (tmp_path / "stopped.py").write_text(
        "import time\n\nimport numpy as np\n\nsleep = time.sleep\n"
        "for name in ('perf_counter', 'perf_counter_ns', 'monotonic', 'monotonic_ns', 'time', 'time_ns'):\n"
        "    setattr(time, name, lambda: 0)\n\n\n"
        "def kernel(x):\n    sleep(0.005)\n    e = np.exp(x - x.max(axis=1, keepdims=True))\n"
        "    return e / e.sum(axis=1, keepdims=True)\n"
    )
    result = compare_untrusted([f"{tmp_path}/stopped.py:kernel"], reference=REFERENCE, inputs=INPUTS, blocks=3)
    assert result.rows[0].median_ns > 5e6


def test_one_that_sleeps_is_announced_once_and_excluded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "asleep.py").write_text("import time\n\n\ndef kernel(x):\n    time.sleep(3600)\n")
    imported = process.ContestantProcess.imported
    monkeypatch.setattr(process.ContestantProcess, "imported", lambda own, _: imported(own, 60.0))  # on a busy machine
    monkeypatch.setattr(process, "_LONG_MS", 1500)
    asleep, announced = f"{tmp_path}/asleep.py:kernel", list[str]()
    result = compare_untrusted([asleep], reference=REFERENCE, inputs=INPUTS, limit=4.0, notify=announced.append)
    assert result.excluded[asleep].code == "E_TIMEOUT"
    assert len([line for line in announced if asleep in line]) == 1


@pytest.mark.slow_but("False")
@pytest.mark.parametrize(("by_another", "code"), [(False, "E_LEFT_RUNNING"), (True, "")])
def test_one_that_was_continued_is_to_blame_unless_all_were(
    monkeypatch: pytest.MonkeyPatch, by_another: bool, code: str
) -> None:
    run_round = Arm.run_round

    def continued_before(arm: Arm, before: int, calls: int) -> None:
        if arm.name == PLAIN:
            os.kill(arm.process.pid, signal.SIGCONT)
            if by_another:
                os.kill(arm.process._terms.witness.pid, signal.SIGCONT)
        run_round(arm, before, calls)

    monkeypatch.setattr(Arm, "run_round", continued_before)
    result = compare_untrusted([PLAIN], reference=REFERENCE, inputs=INPUTS, blocks=3, calls_per_sample=4)
    assert [each.code for each in result.excluded.values()] == ([code] if code else [])


def test_contestants_are_ended_first_where_memory_runs_out(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def kernel(x):\n    return int(open('/proc/self/oom_score_adj').read())\n")
    (tmp_path / "judge").mkdir()
    (tmp_path / "judge" / "task.py").write_text(
        "def draw(rng):\n    return rng.standard_normal(8)\n\n\ndef most(x):\n    return 1000\n"
    )
    task = f"{tmp_path}/judge/task.py"
    own = f"{tmp_path}/own.py:kernel"
    result = compare_untrusted([own], reference=f"{task}:most", inputs=f"{task}:draw", blocks=2, calls_per_sample=4)
    assert [row.name for row in result.rows] == [own]


def test_keeping_answers_by_content_gains_nothing() -> None:
    result = compare_untrusted(
        [PLAIN, f"{HERE}/honest/arrays.py:kept_by_content"], reference=REFERENCE, inputs=INPUTS, blocks=6
    )
    least = {row.name.rpartition(":")[2]: min(row.block_ns) for row in result.rows}  # of undisturbed blocks
    assert least["kept_by_content"] > 0.8 * least["plain"]


def test_the_command_line_ranks_and_excludes() -> None:
    zeros = f"{HERE}/exploits/answers/zeros.py:kernel"
    found = invoke("time", PLAIN, zeros, "--untrusted", "--reference", REFERENCE, "--inputs", INPUTS,
                   "--blocks", 2, "--json")  # fmt: skip
    assert found.exit_code == 0
    document = json.loads(found.stdout)
    assert [row["name"] for row in document["rows"]] == [PLAIN]
    assert document["excluded"][zeros]["code"] == "E_OUTPUT"
    assert document["floor_ns"] > 0
    only = invoke("time", zeros, "--untrusted", "--reference", REFERENCE, "--inputs", INPUTS, "--json")
    assert only.exit_code == 1
    assert (json.loads(only.stdout)["floor_ns"], json.loads(only.stdout)["ring_ns"]) == (None, None)


def test_a_reference_of_a_contestants_file_is_refused() -> None:
    with pytest.raises(InvalidRequest) as refused:
        compare_untrusted([PLAIN], reference=PLAIN, inputs=INPUTS)
    assert refused.value.code == "E_REQUEST"


def test_no_module_of_a_contestants_folder_is_imported_here(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text("def draw(rng):\n    import theirs\n")
    (tmp_path / "theirs.py").write_text("def kernel(x):\n    return x\n")
    with pytest.raises(InvalidRequest):
        compare_untrusted([f"{tmp_path}/theirs.py:kernel"], reference="numpy:sort", inputs=f"{tmp_path}/task.py:draw")


@pytest.mark.parametrize("options", [
    ("--reference", "numpy:sort"),
    ("--untrusted",),
    ("--untrusted", "--reference", "numpy:sort", "--inputs", "numpy:sort", "--target", "1%"),
    ("--untrusted", "--reference", "numpy:sort", "--inputs", "numpy:sort", "--device", "cuda", "--graph"),
])  # fmt: skip
def test_options_that_do_not_go_together_are_refused(options: tuple[str, ...]) -> None:
    assert invoke("time", "numpy:sort", *options).exit_code != 0


def test_inputs_that_change_their_shape_are_refused(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(
        "import numpy as np\n\n\ndef draw(rng):\n    return np.zeros(int(rng.integers(1, 9)))\n"
    )
    with pytest.raises(InvalidRequest):
        compare_untrusted(["numpy:sort"], reference="numpy:sort", inputs=f"{tmp_path}/task.py:draw", blocks=2)


@pytest.mark.slow
def test_an_installed_module_is_a_contestant_too(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text("def draw(rng):\n    return rng.standard_normal(1000)\n")
    result = compare_untrusted(["numpy:sort"], reference="numpy:sort", inputs=f"{tmp_path}/task.py:draw", blocks=2)
    assert [row.name for row in result.rows] == ["numpy:sort"]
    assert np.isfinite(result.rows[0].median_ns)


def test_a_polite_kill_leaves_no_folder_behind(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text("def draw(rng):\n    return rng.standard_normal(1000)\n")
    (tmp_path / "mine.py").write_text("import numpy\n\n\ndef ordered(x):\n    return numpy.sort(x)\n")
    given = ["mine.py:ordered", "numpy:sort", "--reference", "numpy:sort", "--inputs", "task.py:draw"]
    running = subprocess.Popen(
        [sys.executable, "-m", "fairlap", "time", *given, "--untrusted", "--budget", "10m", "--no-wait"],
        cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while not any(tmp_path.glob("fairlap-*/own/mine.py")):
            assert running.poll() is None
            time.sleep(0.02)
        running.terminate()
        assert running.wait() == 128 + signal.SIGTERM
        assert not any(tmp_path.glob("fairlap-*"))
    finally:
        running.kill()
        running.wait()
