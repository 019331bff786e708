"""On the fake device no exploit is ranked, and every honest callable is.

The fake computes nothing but copies, in virtual time, and stops with its process; a device goes on. What only a device
can show is in tests/gpu/test_untrusted_callables.py. Its rules for memory of two processes are those of the driver's
reference (docs.nvidia.com/cuda/cuda-driver-api, cuIpcGetMemHandle and cuIpcOpenMemHandle) and of section 4.15 of the
CUDA programming guide. That they are missing under WSL is in its user guide, "Features Not Yet Supported".
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command_line import error_code, fairlap
from cuda_on_fakes import environment_with_fakes
from fairlap.machine.programs.sandbox import has_seccomp, landlock_version

pytestmark = pytest.mark.skipif(
    not (landlock_version() and has_seccomp()), reason="needs Linux with Landlock and seccomp"
)

HERE = Path(__file__).parent / "hostile_device"
TASK = ("--reference", f"{HERE}/task.py:reference", "--inputs", f"{HERE}/task.py:draw")
EXPLOITS = {
    "waits_for_nothing": {"E_LEFT_RUNNING"},
    "rings_first": {"E_DEFERRED_WORK", "E_PROTOCOL"},
    "rings_as_done": {"E_DEFERRED_WORK", "E_PROTOCOL"},
    "previous_answer": {"E_OUTPUT"},
    "by_address": {"E_OUTPUT"},
    "zeros": {"E_OUTPUT"},
    "takes_a_rivals": {"E_OUTPUT"},
    "leaves_a_kernel": {"E_LEFT_RUNNING"},
    "on_the_host": {"E_CALLABLE_RAISED"},
    "beyond_its_arguments": {"E_CALLABLE_RAISED"},
}
HONEST = ("enqueued", "waited_for", "on_the_default_stream", "behind_a_kernel", "into_its_arguments")
_NOT_IN_ONE_FILE = re.compile(r"^from (?:__future__|\.+prelude) import (?:\([^)]*\)|[^\n]*)\n", re.MULTILINE)


def one_file(source: Path, folder: Path) -> Path:
    """Put what it imports of its neighbours before it, since a callable that is not trusted sees no other file."""
    made = folder / source.name
    made.write_text((HERE / "prelude.py").read_text() + _NOT_IN_ONE_FILE.sub("", source.read_text()))
    return made


def raced(folder: Path, *names: object, board: str = "board") -> subprocess.CompletedProcess[str]:
    """Without a board the fake shares no memory."""
    (folder / "board").touch()
    chosen: dict[str, Any] = {"FAIRLAP_LIBCUDA": environment_with_fakes()["FAIRLAP_LIBCUDA"]}
    chosen["CUDA_FAKE_BOARD"] = folder / board if board else ""
    given = (*names, "--untrusted", *TASK, "--device", "cuda:0", "--blocks", 3, "--calls", 4, "--json")
    return fairlap("time", *given, **chosen)


def document(folder: Path, *names: object) -> Any:
    done = raced(folder, *names)
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)


@pytest.mark.timeout(120)
def test_every_exploit_on_a_device_is_excluded_and_the_honest_callable_ranked(tmp_path: Path) -> None:
    files = {name: f"{one_file(HERE / 'exploits' / f'{name}.py', tmp_path)}:kernel" for name in EXPLOITS}
    honest = f"{one_file(HERE / 'honest.py', tmp_path)}:waited_for"
    found = document(tmp_path, *files.values(), honest)
    codes = {name: found["excluded"].get(file, {"code": "ranked", "reason": ""}) for name, file in files.items()}
    assert {name: each for name, each in codes.items() if each["code"] not in EXPLOITS[name]} == {}
    assert [row["name"] for row in found["rows"]] == [honest]
    assert found["rows"][0]["answers_checked"] > 0
    assert found["device"] == "cuda:0"


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_every_honest_callable_on_a_device_is_ranked(tmp_path: Path) -> None:
    file = one_file(HERE / "honest.py", tmp_path)
    found = document(tmp_path, *(f"{file}:{name}" for name in HONEST))
    assert found["excluded"] == {}
    assert {row["name"].rpartition(":")[2] for row in found["rows"]} == set(HONEST)


def test_a_device_whose_memory_cannot_be_shared_is_refused(tmp_path: Path) -> None:
    """Without a board the fake refuses to export memory, as the driver does under WSL and on Tegra."""
    honest = f"{one_file(HERE / 'honest.py', tmp_path)}:waited_for"
    done = raced(tmp_path, honest, board="")
    assert (done.returncode, error_code(done)) == (2, "E_DEVICE_SHARING")


def test_numbers_are_refused_on_a_device(tmp_path: Path) -> None:
    (tmp_path / "numbers.py").write_text("def draw(rng):\n    return 1.5\n")
    honest = f"{one_file(HERE / 'honest.py', tmp_path)}:waited_for"
    done = raced(tmp_path, honest, "--inputs", f"{tmp_path}/numbers.py:draw")
    assert (done.returncode, error_code(done)) == (2, "E_REQUEST")
