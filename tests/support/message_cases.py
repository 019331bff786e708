"""Messages that no other test renders where it can be seen: each function provokes one, by wrong input to real code.

A function returns what fairlap made of it: an exception, a notice, or the text of an error.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import process_message_cases  # noqa: F401  (adds its cases)
import pytest
from fairlap.cli import _engine_required
from fairlap.cli.races import recorder
from fairlap.engine import _native
from fairlap.engine.cuda.libraries import native_errors_explained
from fairlap.engine.cuda.request import Rotate, StreamRequest, require_cold
from fairlap.engine.cuda.streams import StreamHandle
from fairlap.errors import FairlapError
from fairlap.judgement.own_checks import why_tests_failed
from fairlap.launch.environments import environment_with
from fairlap.machine.doctor import examination
from fairlap.machine.files.private_files import make_cache_folder
from fairlap.machine.race_lock import lock
from fairlap.machine.root import THIS_MACHINE
from fairlap.meters.device_slowdown import DeviceState, full_memory
from fairlap.meters.stolen_time import StolenTime
from fairlap.models.sources.opening import _require_unchanged
from fairlap.models.sources.proof import loose
from fairlap.models.spec import Tolerance
from fairlap.race.processes.sandbox import require_sandboxable
from fairlap.render.charts.parts.static import main_chart
from fairlap.request.fields.source import Source
from fairlap.request.names import Contestants
from fairlap.results.work_result import WorkResult
from fairlap.scenarios.callables.device_blocks import left_out
from fairlap.scenarios.callables.judging import why_not_compared
from fairlap.scenarios.callables.untrusted.on_device import referee_device
from fairlap.scenarios.collectives.render.chart import chart_of
from fairlap.speed_tests.fresh_processes import FreshProcesses
from fairlap.store.errors import store_error
from fairlap.sweep.summary import incomplete
from message_case import CASES as CASES
from message_case import Made, case, noticed, raised, turned


@case("E_ROTATION")
def _(_folder: Path, patch: pytest.MonkeyPatch) -> Made:
    patch.setattr(_native, "stream_cache_bytes", lambda stream, device: 64 << 20)
    rotation = Rotate([(memoryview(bytes(8)),), (memoryview(bytearray(8)),)])
    return raised(require_cold, StreamRequest("device_span", "auto", rotation, False, True), StreamHandle(0, 0, ""))


@case("W_GPU_MEMORY")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    [notice] = full_memory([DeviceState(), DeviceState(used_bytes=79 * 2**30, total_bytes=80 * 2**30)])
    return notice.code, notice.text


@case("E_CACHE")
def _(folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    (folder / "file").touch()
    return raised(make_cache_folder, folder / "file" / "cache")


@case("E_FAIRLAP")
def _(_folder: Path, patch: pytest.MonkeyPatch) -> Made:
    from fairlap.render.charts.parts import static

    for name in ("chart_tables", "charts_of", "main_chart_of", "main_charts_by_batch"):
        patch.setattr(static, name, lambda *_: None)
    return raised(main_chart, SimpleNamespace(works=list), png=False)


@case("E_DEVICE")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    def call() -> None:
        with native_errors_explained():
            raise _native.CudaError("cuEventQuery: unspecified launch failure (CUDA error 719)")

    return raised(call)


@case("E_DEVICE_SHARING")
def _(_folder: Path, patch: pytest.MonkeyPatch) -> Made:
    def refused(_number: int) -> None:
        raise _native.CudaUnavailable("the device is in the compute mode EXCLUSIVE_PROCESS")

    patch.setattr(referee_device, "require_driver", lambda _name: None)
    patch.setattr(_native, "DeviceCopies", refused)
    return raised(referee_device.RefereeDevice, "cuda:0")


@case("E_TESTS")
def _(folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    found = why_tests_failed(folder, "exit 3", ())
    assert found is not None
    return found.code, found.message


@case("E_INSTALL")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Made:
    """With a pip that finds nothing."""
    patch.setenv("FAIRLAP_ENVS", str(folder / "envs"))
    patch.setattr(sys, "executable", "/bin/false")

    def install() -> None:
        with environment_with(("torch==0.0.0",), lambda _: None):
            pass

    return raised(install)


@case("E_NOT_BUILT")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    def load() -> None:
        with _engine_required():
            raise ImportError("undefined symbol: x", name="fairlap.engine._native", path="/x.so")

    return raised(load)


@case("E_SANDBOX")
def _(folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    plan: Any = SimpleNamespace(contestants=Contestants(f"{folder}/worker"), sandbox=True, works=())
    return raised(require_sandboxable, plan)


@case("E_SPEED_TEST")
def _(folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    failing = (sys.executable, "-c", "raise SystemExit('E   assert 1 == 2')")
    return raised(FreshProcesses(failing, folder, folder, 1, 10.0).medians_ns, "test_x.py::test_y")


@case("E_STORE_FULL")
def _(folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    database = sqlite3.connect(folder / "full.sqlite")
    database.execute("PRAGMA max_page_count = 2")
    database.execute("CREATE TABLE t (x)")
    with pytest.raises(sqlite3.Error) as full:
        database.execute("INSERT INTO t VALUES (zeroblob(100000))")
    error = store_error(full.value, folder / "full.sqlite")
    return error.code, str(error)


@case("E_SWEEP_INCOMPLETE")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    run = SimpleNamespace(run=SimpleNamespace(missing=[3]), why_incomplete="no machine of the cluster has 8 cores")
    return "E_SWEEP_INCOMPLETE", incomplete(SimpleNamespace(blocks=8, done=7, runs=[run]))  # type: ignore[arg-type]


@case("E_USAGE")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    done = subprocess.run(
        [sys.executable, "-m", "fairlap", "compare", "mlp", "--bacth", "4"], capture_output=True, text=True
    )
    assert done.returncode == 2
    text, _, code = done.stderr.strip().removeprefix("fairlap: ").rpartition(" [")
    return code.removesuffix("]"), text


@case("W_MIXED_DIVISIONS")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    basis: Any = SimpleNamespace(ranked=("torch:best", "jax"), searched={"torch:best"})
    return noticed([WorkResult(basis, ()).mixed])


@case("W_DOCTOR_RACE")
def _(_folder: Path, patch: pytest.MonkeyPatch) -> Made:
    patch.setattr(examination, "races_running", lambda: ["process 77"])
    [found] = examination.check_races(SimpleNamespace(root=THIS_MACHINE))  # type: ignore[arg-type]
    return found.code, found.found


@case("W_SIDE_BY_SIDE")
def _(_folder: Path, patch: pytest.MonkeyPatch) -> Made:
    lines: list[str] = []
    patch.setattr(lock, "races_running", lambda: ["process 7, which began 10:00:00"])
    patch.setattr(lock, "_noted", set())
    with lock.one_race(wait=True, notify=lines.append):
        pass
    text, _, code = lines[-1].removesuffix("]").rpartition(" [")
    return code, text


@case("W_UNSENT")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    refused = FairlapError("the server does not answer")
    sender: Any = SimpleNamespace(send=lambda *_: (_ for _ in ()).throw(refused))
    _, error = recorder.Recorder.send(SimpleNamespace(_sender=sender), "20260101-000000-abc")  # type: ignore[arg-type]
    assert error is not None
    return error[1], error[0]


CASES |= {
    "W_THROTTLED_BLOCKS": lambda *_: noticed(left_out(3, 0, "")),
    "W_UNLIKE_GATES": lambda *_: noticed(left_out(0, 3, "a behind stream_wait, b without a gate")),
    "E_COLLECTIVES": lambda *_: raised(chart_of, SimpleNamespace(rows=()), None, alone=False),
    "E_SOURCE_CHANGED": lambda *_: raised(
        _require_unchanged, Source("m.onnx", "/m.onnx", files=(("/m.onnx", "0" * 64),)), {}
    ),
    "W_LOOSE_CHECK": lambda *_: noticed(loose({"out": Tolerance(0.9, 0.5, 0.5)})),
    "E_BUSY_MACHINE": lambda *_: turned(StolenTime({"torch": 1.3, "jax": 1.0}, least=1.0, blocks=8).refusal(threads=2)),
    "E_GPU_THROTTLED": lambda *_: turned(StolenTime(device_slowed=(0.0, 0.31), blocks=2).refusal_on_device()),
    "E_THROTTLED": lambda *_: turned(StolenTime({"torch": 1.3}, throttled_blocks=8, blocks=8).refusal(threads=2)),
    "W_ONE_RANKED": lambda *_: turned(why_not_compared(judged=1, blocks=6)),
}
