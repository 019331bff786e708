"""Messages that no other test renders where it can be seen: each function provokes one, by wrong input to real code.

A function returns what fairlap made of it: an exception, a notice, or the text of an error.
"""

from __future__ import annotations

import math
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fairlap.cli import _engine_required
from fairlap.cli.races import recorder
from fairlap.engine import _native
from fairlap.engine.cuda.libraries import native_errors_explained
from fairlap.engine.cuda.request import Rotate, StreamRequest, require_cold
from fairlap.engine.cuda.streams import StreamHandle
from fairlap.errors import FairlapError
from fairlap.frameworks.contract import RANKS
from fairlap.judgement.own_checks import why_tests_failed
from fairlap.launch.environments import environment_with
from fairlap.launch.worker_lost import reported_failure
from fairlap.machine.doctor import examination
from fairlap.machine.files.private_files import make_cache_folder
from fairlap.machine.race_lock import lock
from fairlap.machine.root import THIS_MACHINE
from fairlap.meters.device_slowdown import DeviceState, full_memory
from fairlap.meters.stolen_time import StolenTime
from fairlap.models.sources.opening import _require_unchanged
from fairlap.models.sources.proof import loose
from fairlap.models.spec import Tolerance
from fairlap.race.counted_blocks import INPUTS_AT_FAULT, inputs_at_fault
from fairlap.race.equal_work import answers, training_answers
from fairlap.race.equal_work.material_sources import require_trainable
from fairlap.race.equal_work.materials import Materials
from fairlap.race.equal_work.timed_work import TimedWork, require_done
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.processes.at_scale import record_ranks
from fairlap.race.processes.sandbox import require_sandboxable
from fairlap.race.processes.turns import run_in_rounds
from fairlap.render.charts.parts.static import main_chart
from fairlap.request.fields.source import Source
from fairlap.request.names import Contestants
from fairlap.request.work import Work
from fairlap.results.work_result import WorkResult
from fairlap.scenarios.callables.device_blocks import left_out
from fairlap.scenarios.callables.judging import why_not_compared
from fairlap.scenarios.callables.untrusted.arms import Arm
from fairlap.scenarios.callables.untrusted.on_device import referee_device
from fairlap.scenarios.calls.latency_messages import Reading
from fairlap.scenarios.collectives.render.chart import chart_of
from fairlap.scenarios.learning.race.checkpoints import Checkpoints
from fairlap.scenarios.learning.race.kept_weights import KeptWeights
from fairlap.scenarios.learning.race.training_run import TrainingRun
from fairlap.scenarios.process_result import AnswerError, ProcessResult
from fairlap.speed_tests.fresh_processes import FreshProcesses
from fairlap.store.errors import store_error
from fairlap.sweep.summary import incomplete
from fairlap.worker.protocol import Failed
from fairlap.worker.ranks import lost

Made = tuple[str, str]
"""The code and the text."""
Case = Callable[[Path, pytest.MonkeyPatch], Made]

CASES: dict[str, Case] = {}
WORK = Work("mlp", 4)
PLAN = draw_plan(
    Contestants("torch,jax"), (WORK,), blocks=1, conditions="controlled", threads=1, available_cores=(0,), seed=1
)


def case(code: str) -> Callable[[Case], Case]:
    def kept(function: Case) -> Case:
        CASES[code] = function
        return function

    return kept


def raised(function: Callable[..., object], *arguments: Any, **named: Any) -> Made:
    with pytest.raises(FairlapError) as caught:
        function(*arguments, **named)
    return caught.value.code, str(caught.value)


def noticed(notices: Any) -> Made:
    [notice] = notices
    return notice.code, notice.text


def turned(found: tuple[str, str]) -> Made:
    text, code = found
    return code, text


def failure(failed: Failed) -> Made:
    return failed.code, failed.message


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


@case("E_NOT_TRAINED")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    bundle: Any = SimpleNamespace(no_training="it draws random numbers in training, as dropout does")
    return raised(require_trainable, bundle, Work("m.onnx", 4, "train"))


@case("E_GRADIENT")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    wrong = AnswerError("gradient along direction 1", "first call", math.nan, math.nan, 0.3, right=False)
    return raised(answers.require_right, [wrong], {"threads": "1"})


@case("E_STALE_ANSWER")
def _(_folder: Path, patch: pytest.MonkeyPatch) -> Made:
    wrong = AnswerError("out", "before", 0.1, 1.0, 1.0, right=False)
    patch.setattr(answers, "array_errors", lambda *_: [AnswerError("out", "before", 1.0, 0.0, 0.0, right=True)])
    materials: Any = SimpleNamespace(work=WORK)
    return raised(answers.require_right_on, materials, {}, "inputs", [wrong], {}, "a call (changed inputs)")


@case("E_TESTS")
def _(folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    found = why_tests_failed(folder, "exit 3", ())
    assert found is not None
    return found.code, found.message


def _ranks(host: str, printed: str, status: int) -> Any:
    """Fake what is left of a contestant whose launcher has ended."""
    launch = SimpleNamespace(
        place=SimpleNamespace(host=host), launcher="torchrun", is_rank=False, first=0, ranks=2, has=lambda _: True
    )
    of = SimpleNamespace(launch=launch, text=printed, process=SimpleNamespace(poll=lambda: status))
    empty: dict[str, Any] = {"in_order_of_loss": [], "in_order_of_failure": [], "stopped": list, "joined": []}
    return SimpleNamespace(launched=[of], missing=list, hear_out=lambda *_: None, **empty)


@case("E_INPUTS_AT_FAULT")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    def off(name: str) -> ProcessResult:
        made = ProcessResult(0, 0, name, "m.onnx", "controlled", "disqualified", "E_OUTPUT")
        made.errors = [AnswerError("out", "before", 0.9, 1e-3, 1e-3, right=False)]
        return made

    own = Work("m.onnx", 4, source=Source("m.onnx", "/m.onnx"))
    return INPUTS_AT_FAULT, inputs_at_fault(own, {"torch": [off("torch")], "jax": [off("jax")]})


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


@case("E_NO_ROOM")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    run: Any = SimpleNamespace(result=SimpleNamespace(started="together", contestant="torch"), end=lambda: None)
    return raised(run_in_rounds, [run], PLAN, PLAN.blocks[0], 1, {"torch": 2**60})


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


@case("E_UNSUPPORTED")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    error = reported_failure(Failed("build", "unsupported", "litert has no mode grad", ""))
    return error.code, str(error)


@case("E_USAGE")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    done = subprocess.run(
        [sys.executable, "-m", "fairlap", "compare", "mlp", "--bacth", "4"], capture_output=True, text=True
    )
    assert done.returncode == 2
    text, _, code = done.stderr.strip().removeprefix("fairlap: ").rpartition(" [")
    return code.removesuffix("]"), text


@case("W_BUDGET_IN_TRAINING")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    learner = SimpleNamespace(
        goes_on=True, curve=SimpleNamespace(evaluations=[1, 2]), state=None, score_last=dict, scores=dict
    )
    process = _process()
    TrainingRun.end(SimpleNamespace(_learner=learner), process)  # type: ignore[arg-type]
    return noticed(process.result.warnings)


@case("W_CHECKPOINT")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    process = _process()
    found = SimpleNamespace(curve=SimpleNamespace(evaluations=[1, 2, 3]), errors=[])
    process.bench.of_scenarios[Checkpoints] = SimpleNamespace(find=lambda *_: found)
    learner = SimpleNamespace(go_on_from=lambda *_: None)
    TrainingRun.begin(SimpleNamespace(_learner=learner, _limits=SimpleNamespace(answer_s=1.0)), process)  # type: ignore[arg-type]
    return noticed(process.result.warnings)


def _process() -> Any:
    result = ProcessResult(0, 0, "torch", WORK.id, "controlled")
    of_scenarios: dict[type, Any] = {KeptWeights: SimpleNamespace(offer=lambda *_: None)}
    bench = SimpleNamespace(
        of_scenarios=of_scenarios, kept=lambda kind, make: of_scenarios[kind] if kind in of_scenarios else make()
    )
    return SimpleNamespace(result=result, bench=bench, worker=None)


def _of_timed_calls(*, cores_wanted: float = 0.0, in_others_s: float = 0.0, uses_too_little: bool = False) -> Made:
    timed: Any = SimpleNamespace(
        _plan=PLAN,
        _materials=SimpleNamespace(work=WORK),
        _process=SimpleNamespace(elsewhere=False, ranks=None, work_in="here"),
        _cores_wanted=cores_wanted,
        _in_others_s=in_others_s,
        _watched_s=1.0,
        _cpu_s=0.1,
        _measured_s=1.0,
        _uses_too_little_cpu=lambda: uses_too_little,
    )
    timed._work_in_others = lambda: TimedWork._work_in_others(timed)
    return noticed(TimedWork._notices(timed))


@case("W_MIXED_DIVISIONS")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    basis: Any = SimpleNamespace(ranked=("torch:best", "jax"), searched={"torch:best"})
    return noticed([WorkResult(basis, ()).mixed])


@case("E_CALLS_TOGETHER")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    process: Any = SimpleNamespace()
    floor, batching = Arm("the empty call", process), Arm("a", process)
    floor.alone_ns, floor.together_ns = [100e3] * 30, [5e3] * 10
    batching.alone_ns, batching.together_ns = [900e3] * 30, [25e3] * 10
    return raised(batching.require_one_by_one, floor)


@case("W_DOCTOR_RACE")
def _(_folder: Path, patch: pytest.MonkeyPatch) -> Made:
    patch.setattr(examination, "races_running", lambda: ["process 77"])
    [found] = examination.check_races(SimpleNamespace(root=THIS_MACHINE))  # type: ignore[arg-type]
    return found.code, found.found


@case("W_NOT_DIVIDED")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    result = ProcessResult(0, 0, "torch:fsdp", WORK.id, "controlled")
    prepared: Any = SimpleNamespace(hosts=(), in_force={RANKS: "one process, so nothing is divided"})
    record_ranks(result, prepared)
    return noticed(result.warnings)


@case("W_SIDE_BY_SIDE")
def _(_folder: Path, patch: pytest.MonkeyPatch) -> Made:
    lines: list[str] = []
    patch.setattr(lock, "races_running", lambda: ["process 7, which began 10:00:00"])
    with lock.one_race(wait=True, notify=lines.append):
        pass
    text, _, code = lines[-1].removesuffix("]").rpartition(" [")
    return code, text


@case("W_TRAINING_SUMS")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    why = "it ends where sums in bfloat16 do"
    return noticed(training_answers.lost_sums([AnswerError("w", "after", 1.0, 0.1, 0.1, right=True, why=why)]))


@case("W_TRAINING_UNSEEN")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    materials: Any = SimpleNamespace(
        work=SimpleNamespace(training=True, precision="bf16"),
        training_check=lambda _: SimpleNamespace(exercise=SimpleNamespace(ranks=1), unseen_mistakes=None),
        _kept=lambda *_: ["it trains without momentum"],
    )
    return noticed(Materials.unseen_mistakes(materials))


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
    "E_DEFERRED_WORK": lambda *_: raised(require_done, Reading(deferred="Future"), 0.1, "a call", "cpu"),
    "E_WEIGHTS": lambda *_: raised(answers.require_weights, SimpleNamespace(weights_hash="0" * 64), "f" * 64),
    "E_THREADS": lambda *_: raised(answers.require_settings, {"threads": "4"}, 1, "fp32"),
    "E_PRECISION": lambda *_: raised(answers.require_settings, {"precision": "bf16"}, 1, "fp32"),
    "E_HOST": lambda *_: failure(lost.after_trouble(_ranks("other", "Connection refused", 255), "launch")),
    "E_RANK": lambda *_: failure(lost.after_trouble(_ranks("", "its last words", -9), "launch")),
    "E_SOURCE_CHANGED": lambda *_: raised(
        _require_unchanged, Source("m.onnx", "/m.onnx", files=(("/m.onnx", "0" * 64),)), {}
    ),
    "W_MORE_THREADS": lambda *_: _of_timed_calls(cores_wanted=3.4),
    "W_LITTLE_CPU_TIME": lambda *_: _of_timed_calls(uses_too_little=True),
    "W_OTHER_PROCESSES": lambda *_: _of_timed_calls(in_others_s=2.3),
    "W_LOOSE_CHECK": lambda *_: noticed(loose({"out": Tolerance(0.9, 0.5, 0.5)})),
    "E_BUSY_MACHINE": lambda *_: turned(StolenTime({"torch": 1.3, "jax": 1.0}, least=1.0, blocks=8).refusal(threads=2)),
    "E_GPU_THROTTLED": lambda *_: turned(StolenTime(device_slowed=(0.0, 0.31), blocks=2).refusal_on_device()),
    "E_THROTTLED": lambda *_: turned(StolenTime({"torch": 1.3}, throttled_blocks=8, blocks=8).refusal(threads=2)),
    "W_ONE_RANKED": lambda *_: turned(why_not_compared(judged=1, blocks=6)),
}
