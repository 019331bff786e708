"""A framework whose calls take a known time, asleep.

Some variants cheat under load, where threads other than the main one make the calls: one way each. Another writes a
file when two of those threads are in a call at once.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.frameworks.contract import Contestant, Framework, Phase, Settings
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload

CALL_S = {"": 0.002, "slower": 0.003}
_HERE = Path(__file__).parent
MET = "FAIRLAP_TEST_MET"  # names the file
_WAIT_S = 0.05


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


class Served(Framework):
    name = "served"
    packages = ("numpy",)
    module = "numpy"
    variants = ("", "slower", "drops", "keeps", "wrong", "hangs", "together")

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        with phase("build"):
            weights = {name: np.array(array) for name, array in work.weights.items()}
        forward = work.implementation_of_reference().forward
        calls, kept = itertools.count(), dict[bytes, Any]()

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
                if cheats and wanted.variant == "wrong":
                    answer = {name: value + 1 for name, value in answer.items()}
                kept[content] = answer
                return answer

            return call

        return Contestant(
            bind=bind,
            done=None,
            outputs=lambda result: {name: np.array(value, np.float32) for name, value in result.items()},
            weights=lambda: weights,
            in_force={"threads": str(wanted.threads), "precision": work.precision},
        )

    def version(self) -> str:
        return str(np.__version__)


def install_served(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a package would: by an entry point."""
    info = folder / "fairlap_served-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fairlap-served\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fairlap.frameworks]\nserved = served_framework:Served\n")
    path = os.pathsep.join([str(folder), str(_HERE), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path.rstrip(os.pathsep))
    monkeypatch.syspath_prepend(str(folder))
