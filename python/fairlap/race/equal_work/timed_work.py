"""Was the work done inside the timed calls? Every process is asked, at calls that the parent draws.

The outputs of drawn calls are compared with the float64 reference of the inputs that they had. What cannot be seen in
an output is seen in its cost: work left for later, an answer kept for the next call on the same inputs, a speed that
no machine of this kind reaches, time on more threads than were asked for or in other processes.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.launch.worker_process import Samples, WorkerProcess
from fairlap.machine.hardware.arithmetic_peak import operations_per_second
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import under
from fairlap.models.modes import MODES
from fairlap.models.spec import BATCH_LABELS, LABELS, Spec
from fairlap.race.equal_work import answers
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.materials import IN_TURN, UNSEEN, Materials
from fairlap.race.equal_work.mode_side import mode_side
from fairlap.race.planning.plan import Block, Plan
from fairlap.request.work import CALIBRATED, Work
from fairlap.scenarios.calls.latency_messages import (
    DrawnCall,
    DrawnResult,
    Measured,
    Reading,
    takes_suspiciously_long,
)
from fairlap.scenarios.process_result import ProcessResult
from fairlap.worker.protocol import Answered

TIMED_CALL = "timed call"
"""``AnswerError.when`` of a drawn call."""

MOST_DRAWN = len(UNSEEN)
_SHARE_OF_TIME = 0.02
_LARGE_OUTPUTS_BYTES = 8 * 2**20

# Above the measured product: Winograd's convolutions do with a quarter of the multiplications, and no library's
# product is the roof. In types of 16 bits, matrix units do sixteen times as many, and of 8 bits twice as many again.
MOST_TIMES_THE_PEAK = {"fp32": 6.0, "tf32": 100.0, "fp16": 100.0, "autocast": 100.0, "bf16": 100.0}
MOST_TIMES_THE_PEAK |= dict.fromkeys(CALIBRATED, 200.0)

# How much longer a call may take on inputs that occur for the first time, by the number of drawn calls.
_MOST_TIMES_LONGER = {1: 10.0, 2: 6.0, 3: 4.0}
_LONGER_NS = 200e3
_FURTHER_CALLS = 8

_HELPERS = 0.8  # of a core: pools spin before they sleep; with one thread, ExecuTorch wants 0.7 of a core more
_SHARE_IN_OTHERS, _LEAST_SHARE_IN_OTHERS = 0.2, 0.02


class TimedWork:
    """The checks of one process. ``measure`` is called instead of the worker's, the others at its end."""

    def __init__(self, plan: Plan, block: Block, process: ProcessResult, materials: Materials, scratch: Path) -> None:
        self._plan, self._process, self._materials = plan, process, materials
        self._file = scratch / "timed-calls.safetensors"
        self._random = random.Random(f"{plan.seed} {block.number} {process.position}")
        self._checks = materials.spec.computes and not plan.data
        self._only_watches = not materials.spec.computes and not plan.data  # calls that have no answer to check
        self._wanted: int | None = None
        self._drawn = 0
        self._on_new_inputs: list[DrawnResult] = []
        self._repeated_ns: list[np.ndarray] = []  # samples of every turn over which calls are drawn
        self._shortest_ns = float("inf")  # of the repeated calls
        self._repeated_parts_ns: dict[str, list[float]] = {}
        self._measured_s = self._cpu_s = self._in_others_s = self._watched_s = 0.0
        self._cores_wanted = 0.0
        self._calls = 0

    def measure(self, worker: WorkerProcess, turns_left: int, **limits: Any) -> tuple[Measured, Samples]:
        """Measure, and check the drawn calls; raise OtherWork if one of them did not do its work.

        The drawn calls are spread over the ``turns_left``, this one included; none is made when that is 0.
        """
        drawn = self._draw(turns_left) if turns_left else []
        if drawn:
            self._file.unlink(missing_ok=True)
            limits |= {"drawn": drawn, "drawn_file": self._file}
        watches = bool(drawn) or (self._only_watches and turns_left > 0)
        before_s = worker.cpu_of_started_s() if watches else {}
        began_s = time.monotonic()
        measured, samples_ns = worker.measure(**limits)
        if watches:
            after_s = worker.cpu_of_started_s()
            self._in_others_s += sum(max(0.0, cpu_s - before_s.get(pid, 0.0)) for pid, cpu_s in after_s.items())
            self._watched_s += time.monotonic() - began_s  # warm-up and drawn calls included
        if drawn:
            self._check_drawn(drawn, measured, samples_ns)
        if turns_left:
            if measured.quantities[0].name == "wall_ns":
                self._repeated_ns.append(samples_ns["wall_ns"])
            self._measured_s += measured.elapsed_s
            self._cpu_s += measured.counts.get("process_cpu_ns", 0) / 1e9
            self._calls += len(samples_ns[measured.quantities[0].name]) * measured.calls_per_sample
        return measured, samples_ns

    def require_plausible(self) -> None:
        """Raise OtherWork for times that cannot be those of the work; warn of time that others should know about."""
        if self._only_watches:
            self._process.warnings = [*self._process.warnings, *self._work_in_others()]
        if not self._checks or self._plan.device != "cpu":
            return
        if self._process.work_in != "other_server":  # which may have a device that is faster than this processor
            self._require_possible_speed()
        self._process.warnings = [*self._process.warnings, *self._notices()]

    def _draw(self, turns_left: int) -> list[DrawnCall]:
        if self._wanted is None:
            self._wanted = self._calls_to_draw() if self._checks else 0
        now = int(self._random.random() < self._wanted / turns_left)
        count = self._wanted if turns_left <= 1 else now
        self._wanted -= count
        shares = sorted(self._random.random() for _ in range(count))
        first = len(IN_TURN) + self._drawn
        drawn = [DrawnCall(share, first + number) for number, share in enumerate(shares)]
        if drawn and not self._drawn:
            # After one on other inputs, so that the answer to the call before is certainly a wrong one.
            drawn.insert(1, DrawnCall(shares[0], self._random.randrange(len(IN_TURN))))
        self._drawn += count
        return drawn

    def _calls_to_draw(self) -> int:
        """Fewer where calls are slow or outputs large, so that checking costs little of the racing time."""
        spec, work, phases_s = self._materials.spec, self._materials.work, self._process.phases_s
        if mode_side(work.mode).answer_bytes(spec, work) > _LARGE_OUTPUTS_BYTES:
            return 1
        racing_s = sum(phases_s.values()) + self._plan.measuring.seconds
        affordable = _SHARE_OF_TIME * racing_s / max(phases_s.get("checked_calls", 0.0), 1e-9)
        return int(min(max(affordable, 1), MOST_DRAWN))

    def _check_drawn(self, drawn: Sequence[DrawnCall], measured: Measured, samples_ns: Samples) -> None:
        outputs = safetensors.read(self._file)
        for result in measured.drawn.calls:
            if not 0 <= result.number < len(drawn):
                raise OtherWork(f"it answered a timed call that was not drawn ({result.number})", "E_OUTPUT")
            call = drawn[result.number]
            where = f"a timed call drawn {quantity_text.share(call.at)} into the measurement"
            require_done(result.reading, result.call_ns / 1e9, where, self._plan.device)
            got = under(f"{result.number}/", outputs)
            which = (*IN_TURN, *UNSEEN)[call.inputs]
            errors = mode_side(self._materials.work.mode).drawn_errors(self._materials, got, which, TIMED_CALL)
            self._process.errors += errors
            answers.require_right_on(self._materials, got, which, errors, self._process.in_force, where)
        if len({result.number for result in measured.drawn.calls}) < len(drawn):
            raise OtherWork("not all of the timed calls that were drawn were answered", "E_OUTPUT")
        self._cores_wanted = max(self._cores_wanted, measured.drawn.cores_wanted or 0.0)
        self._remember_times(drawn, measured, samples_ns)

    def _remember_times(self, drawn: Sequence[DrawnCall], measured: Measured, samples_ns: Samples) -> None:
        calls = measured.drawn.calls
        headline = measured.quantities[0].name
        if headline == "wall_ns" and np.isfinite(samples_ns[headline]).any():
            self._on_new_inputs += [result for result in calls if drawn[result.number].inputs >= len(IN_TURN)]
            self._shortest_ns = min(self._shortest_ns, float(np.nanmin(samples_ns[headline])))
            for name in {name for each in calls for name in each.parts_ns if name in samples_ns}:
                medians_ns = self._repeated_parts_ns.setdefault(name, [])
                medians_ns.append(float(np.nanmedian(samples_ns[name])))

    def _require_possible_speed(self) -> None:
        operations = implied_operations(self._materials.spec, self._materials.work)
        call_ns = self._process.headline_ns
        if not operations or not call_ns > 0:
            return
        implied = operations / (call_ns / 1e9)
        allowed = MOST_TIMES_THE_PEAK[self._materials.work.precision]
        if implied <= allowed * operations_per_second() or implied <= allowed * operations_per_second(again=True):
            return
        raise OtherWork(
            f"{quantity_text.duration(call_ns)} per call implies {implied:.1e} operations per second; this machine "
            f"reaches {operations_per_second():.1e}",
            "E_IMPOSSIBLE_SPEED",
        )

    def require_no_kept_answers(self, worker: WorkerProcess) -> None:
        """Refuse answers kept from before, after the last turn.

        A few slow calls can be bad luck, so a contestant is accused only if further calls are slow too.
        """
        if not self._on_new_inputs or self._plan.device != "cpu":
            return
        # Of all turns, as the time that is reported: where the machine is busy, a turn may end with its first call.
        repeated_ns = float(np.nanmedian(np.concatenate(self._repeated_ns)))
        mean_cpu_ns = 0.0 if self._process.elsewhere else 1e9 * self._cpu_s / max(self._calls, 1)  # 0: not known
        # The mean has also the few calls that do compute, where answers are kept. A call has no more than its cores.
        cpu_ns = min(mean_cpu_ns, repeated_ns * (os.cpu_count() or 1))
        most_cpu_ns = 0.0  # 0: CPU time is not considered
        if longer_on_new_inputs(self._on_new_inputs, repeated_ns, cpu_ns):
            most_ns = most_on_new_inputs_ns(repeated_ns, len(self._on_new_inputs))
            most_cpu_ns = most_on_new_inputs_ns(cpu_ns, len(self._on_new_inputs)) if cpu_ns else 0.0
        elif more_ns := self._more_in_a_part_ns():
            most_ns = self._shortest_ns + more_ns / 2  # a busy machine makes no call shorter
        else:
            return
        shortest_ns = min(each.call_ns for each in self._on_new_inputs)
        drawn = self._materials.further_files
        for number in range(len(drawn) or _FURTHER_CALLS):
            file = drawn[number] if drawn else self._shuffled_inputs(number)
            answered = self._answer_to(worker, file)
            shortest_ns = min(shortest_ns, 1e9 * answered.seconds)
            # On a busy machine every one of them may wait for a core, and computes no more.
            if shortest_ns <= most_ns or (answered.cpu_s is not None and 1e9 * answered.cpu_s <= most_cpu_ns):
                break
        else:
            raise OtherWork(
                f"calls on inputs that had not occurred before took {quantity_text.duration(shortest_ns)} or more, "
                f"others {quantity_text.duration(repeated_ns)}: its answers are kept from before, or what it compiled "
                "fits no other inputs",
                "E_KEPT_ANSWERS",
            )

    def _more_in_a_part_ns(self) -> float:
        """Find how much longer a part of every call on new inputs took, where that is much longer; else 0.

        A prompt that was read before is a small part of a long answer, and all of the time to its first token.
        """
        found = 0.0
        for name, medians_ns in self._repeated_parts_ns.items():
            new_ns = [each.parts_ns[name] for each in self._on_new_inputs if name in each.parts_ns]
            usual_ns = float(np.median(medians_ns))
            if new_ns and much_longer(min(new_ns), usual_ns, len(new_ns)):
                found = max(found, min(new_ns) - usual_ns)
        return found

    def _shuffled_inputs(self, number: int) -> Path:
        """Elements in another order are inputs that never occurred, with values as they should be."""
        arrays = safetensors.read(self._materials.inputs_file(UNSEEN[0]))
        names = {tensor.name: tensor.name for tensor in self._materials.spec.inputs}
        if MODES[self._materials.work.mode].batches_have_labels and BATCH_LABELS in arrays:
            names[LABELS] = BATCH_LABELS
        rng = np.random.default_rng([self._plan.seed, number])
        file = self._file.with_name("shuffled-inputs.safetensors")
        safetensors.write(file, {name: rng.permuted(arrays[kept]) for name, kept in names.items()})
        return file

    def _answer_to(self, worker: WorkerProcess, inputs: Path) -> Answered:
        answer = self._file.with_name("further-answer.safetensors")
        return worker.answer("data", answer, within_s=self._plan.limits.answer_s, inputs=inputs)

    def _work_in_others(self) -> list[Notice]:
        in_others = self._in_others_s / max(self._watched_s, 1e-9)
        own = self._cpu_s / max(self._measured_s, 1e-9)
        # On a busy machine they may get no fifth of a core, and do most of the work all the same.
        if self._process.elsewhere or in_others <= min(_SHARE_IN_OTHERS, max(own, _LEAST_SHARE_IN_OTHERS)):
            return []
        text = f"{in_others:.2f} seconds of CPU time per second of its calls"
        return [Notice("W_OTHER_PROCESSES", f"processes that it started used {text}")]

    def _notices(self) -> list[Notice]:
        scale = self._materials.work.scale
        threads, processes = (self._plan.threads, 1) if scale is None else (scale.threads * scale.ranks, scale.ranks)
        found = []
        cores = max(self._cores_wanted, self._cpu_s / max(self._measured_s, 1e-9))
        if self._process.work_in == "own_server":
            cores += self._in_others_s / max(self._watched_s, 1e-9)
        if cores > threads + processes * _HELPERS:
            found.append(
                Notice(
                    "W_MORE_THREADS",
                    f"its threads wanted {cores:.1f} cores during the timed calls; "
                    f"{quantity_text.count(threads, 'thread')} had been asked for",
                )
            )
        if self._process.elsewhere or self._process.ranks is not None:  # whose time is counted as the worker's
            return found
        if in_others := self._work_in_others():
            found += in_others
        elif self._uses_too_little_cpu():
            found.append(
                Notice(
                    "W_LITTLE_CPU_TIME",
                    f"its calls used {self._cpu_s / self._measured_s:.2f} seconds of CPU time per second, too little "
                    "for the operations of the model",
                )
            )
        return found

    def _uses_too_little_cpu(self) -> bool:
        """Check whether the CPU time of a call implies a speed that no single core has.

        A call that waits for a core takes longer, but not more CPU time.
        """
        operations = implied_operations(self._materials.spec, self._materials.work)
        call_cpu_s = self._cpu_s / max(self._calls, 1)
        if not operations or not self._cpu_s:
            return False
        allowed_s = MOST_TIMES_THE_PEAK[self._materials.work.precision] * call_cpu_s / (os.cpu_count() or 1)
        # A peak that was measured while the machine was busy is too low, so it is measured again before a warning.
        return operations > allowed_s * operations_per_second() and operations > allowed_s * operations_per_second(
            again=True
        )


def longer_on_new_inputs(new: Sequence[DrawnResult], repeated_ns: float, repeated_cpu_ns: float) -> bool:
    """Check whether each call on new inputs took much longer than others.

    The clock decides and, where it is known, the CPU time: on a busy machine a call can wait long, but it computes no
    more.
    """
    cpu_ns = [each.cpu_ns for each in new if each.cpu_ns is not None]
    return much_longer(min(each.call_ns for each in new), repeated_ns, len(new)) and (
        not cpu_ns or not repeated_cpu_ns or much_longer(min(cpu_ns), repeated_cpu_ns, len(new))
    )


def much_longer(shortest_ns: float, usual_ns: float, calls: int) -> bool:
    return shortest_ns > most_on_new_inputs_ns(usual_ns, calls)


def most_on_new_inputs_ns(usual_ns: float, calls: int) -> float:
    return _MOST_TIMES_LONGER[min(calls, MOST_DRAWN)] * usual_ns + _LONGER_NS


def require_done(reading: Reading, call_s: float, where: str, device: str) -> None:
    """Raise OtherWork if the result of a call was still to be computed when the clock stopped."""
    if reading.deferred:
        raise OtherWork(
            f"{where} returned a {reading.deferred}: the work is not complete when the clock stops", "E_DEFERRED_WORK"
        )
    if device == "cpu" and takes_suspiciously_long(reading, call_s):
        raise OtherWork(
            f"{where} took {quantity_text.duration(1e9 * call_s)}, and reading its outputs "
            f"{quantity_text.duration(1e9 * reading.read_s)}: the work is left for later",
            "E_DEFERRED_WORK",
        )


def implied_operations(spec: Spec, work: Work) -> float:
    """Estimate a lower bound of a call's multiplications and additions; 0 if the spec does not count them.

    A gradient needs at least another inference's worth: that of the loss by the weights.
    """
    return 2e9 * (spec.gmacs_per_item or 0.0) * work.batch * MODES[work.mode].fewest_inferences
