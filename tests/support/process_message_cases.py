"""Messages about the processes of contestants and their answers that no other test renders where it can be seen."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fairlap.frameworks.contract import RANKS
from fairlap.launch.worker_lost import reported_failure
from fairlap.race.counted_blocks import INPUTS_AT_FAULT, inputs_at_fault
from fairlap.race.equal_work import answers, training_answers
from fairlap.race.equal_work.material_sources import require_trainable
from fairlap.race.equal_work.materials import Materials
from fairlap.race.equal_work.timed_work import TimedWork, require_done
from fairlap.race.processes.at_scale import record_ranks
from fairlap.race.processes.turns import run_in_rounds
from fairlap.request.fields.source import Source
from fairlap.request.work import Work
from fairlap.scenarios.callables.untrusted.arms import Arm
from fairlap.scenarios.calls.latency_messages import Reading
from fairlap.scenarios.learning.race.checkpoints import Checkpoints
from fairlap.scenarios.learning.race.kept_weights import KeptWeights
from fairlap.scenarios.learning.race.training_run import TrainingRun
from fairlap.scenarios.process_result import AnswerError, ProcessResult
from fairlap.worker.protocol import Failed
from fairlap.worker.ranks import lost
from message_case import CASES, PLAN, WORK, Made, case, failure, noticed, raised


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


@case("E_NO_ROOM")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    run: Any = SimpleNamespace(result=SimpleNamespace(started="together", contestant="torch"), end=lambda: None)
    return raised(run_in_rounds, [run], PLAN, PLAN.blocks[0], 1, {"torch": 2**60})


@case("E_UNSUPPORTED")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    error = reported_failure(Failed("build", "unsupported", "litert has no mode grad", ""))
    return error.code, str(error)


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


@case("E_CALLS_TOGETHER")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    process: Any = SimpleNamespace()
    floor, batching = Arm("the empty call", process), Arm("a", process)
    floor.alone_ns, floor.together_ns = [100e3] * 30, [5e3] * 10
    batching.alone_ns, batching.together_ns = [900e3] * 30, [25e3] * 10
    return raised(batching.require_one_by_one, floor)


@case("W_NOT_DIVIDED")
def _(_folder: Path, _patch: pytest.MonkeyPatch) -> Made:
    result = ProcessResult(0, 0, "torch:fsdp", WORK.id, "controlled")
    prepared: Any = SimpleNamespace(hosts=(), in_force={RANKS: "one process, so nothing is divided"})
    record_ranks(result, prepared)
    return noticed(result.warnings)


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


CASES |= {
    "E_DEFERRED_WORK": lambda *_: raised(require_done, Reading(deferred="Future"), 0.1, "a call", "cpu"),
    "E_WEIGHTS": lambda *_: raised(answers.require_weights, SimpleNamespace(weights_hash="0" * 64), "f" * 64),
    "E_THREADS": lambda *_: raised(answers.require_settings, {"threads": "4"}, 1, "fp32"),
    "E_PRECISION": lambda *_: raised(answers.require_settings, {"precision": "bf16"}, 1, "fp32"),
    "E_HOST": lambda *_: failure(lost.after_trouble(_ranks("other", "Connection refused", 255), "launch")),
    "E_RANK": lambda *_: failure(lost.after_trouble(_ranks("", "its last words", -9), "launch")),
    "W_MORE_THREADS": lambda *_: _of_timed_calls(cores_wanted=3.4),
    "W_LITTLE_CPU_TIME": lambda *_: _of_timed_calls(uses_too_little=True),
    "W_OTHER_PROCESSES": lambda *_: _of_timed_calls(in_others_s=2.3),
}
