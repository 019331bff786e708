"""A framework whose calls take a known time, asleep.

Some variants cheat under load, where threads other than the main one make the calls: one way each. Another writes a
file when two of those threads are in a call at once.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlap.frameworks.contract import Contestant, Phase, Settings
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload
from installed_package import install_frameworks
from numpy_framework import NumpyFramework, copied, in_float32, in_force

if TYPE_CHECKING:
    import pytest

CALL_S = {"": 0.002, "slower": 0.003}
MET = "FAIRLAP_TEST_MET"  # names the file
_WAIT_S = 0.01
_TIRES_AFTER = 5  # calls of a thread about the same item


class Meeting:
    """Of threads that are in a call at the same time. Until there was one, each waits a while for another."""

    def __init__(self) -> None:
        self._lock, self._met, self._present = threading.Lock(), threading.Event(), 0

    def attend(self) -> None:
        with self._lock:
            self._present += 1
            if self._present > 1:
                Path(os.environ[MET]).touch()
                self._met.set()
        self._met.wait(_WAIT_S)
        with self._lock:
            self._present -= 1


_MEETING = Meeting()


class Served(NumpyFramework):
    name = "served"
    variants = ("", "slower", "drops", "keeps", "wrong", "hangs", "together", "tires")

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        with phase("build"):
            weights = copied(work.weights)
        forward = work.implementation_of_reference().forward
        calls, kept = itertools.count(), dict[bytes, Any]()
        times = Counter[tuple[threading.Thread, bytes]]()

        def bind(inputs: Arrays) -> Callable[[], Any]:
            content = b"".join(array.tobytes() for array in inputs.values())

            def call() -> Any:
                cheats = threading.current_thread() is not threading.main_thread()
                number = next(calls) if cheats else 0
                if cheats and wanted.variant == "keeps" and content in kept:
                    return kept[content]
                if cheats and wanted.variant == "drops" and number % 5 == 4:
                    return None
                if cheats and wanted.variant == "hangs" and number == 50:
                    time.sleep(1000)
                if cheats and wanted.variant == "together":
                    _MEETING.attend()
                time.sleep(CALL_S.get(wanted.variant, CALL_S[""]))
                answer = forward(weights, inputs)
                times[threading.current_thread(), content] += 1
                tires = wanted.variant == "tires" and times[threading.current_thread(), content] > _TIRES_AFTER
                if cheats and (tires or wanted.variant == "wrong"):
                    answer = {name: value + 1 for name, value in answer.items()}
                kept[content] = answer
                return answer

            return call

        return Contestant(
            bind=bind,
            done=None,
            outputs=in_float32,
            weights=lambda: weights,
            in_force=in_force(work, wanted),
        )


def install_served(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_frameworks(folder, monkeypatch, {"served": "served_framework:Served"})
    monkeypatch.setattr("fairlap.scenarios.load.race.rate_search._CAPACITY_S", 0.1)
