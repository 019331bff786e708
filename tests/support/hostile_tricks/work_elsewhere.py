"""Tricks that work in other threads and processes, or leave some behind."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from fairlap.models.arrays import Arrays

from hostile_tricks.honest import Call, Forward, Honest


class OtherProcess(Honest):
    """Computes in a child process, and waits for it."""

    def __init__(self) -> None:
        self._ends: tuple[Connection, Connection] | None = None

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        def call() -> Any:
            if self._ends is None:
                self._ends = _started(forward)
            self._ends[0].send(dict(inputs))
            return self._ends[0].recv()

        return call


def _started(forward: Forward) -> tuple[Connection, Connection]:
    ours, theirs = multiprocessing.Pipe()
    if os.fork() == 0:
        os.setsid()
        while True:
            theirs.send(forward(theirs.recv()))
    return ours, theirs


class MoreThreads(Honest):
    """Splits every call over four threads, whatever was asked for."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(4)

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        shares = [np.array_split(array, 4) for array in inputs.values()]
        parts = [dict(zip(inputs, arrays, strict=True)) for arrays in zip(*shares, strict=True)]

        def call() -> Any:
            answers = list(self._pool.map(forward, parts))
            return {name: np.concatenate([answer[name] for answer in answers]) for name in answers[0]}

        return call


class Busy(Honest):
    """Computes, and starts the next call's work in a background thread."""

    def __init__(self) -> None:
        self._started = False

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        def call() -> Any:
            if not self._started:
                self._started = True
                threading.Thread(target=_work_for_ever, args=(forward, inputs), daemon=True).start()
            return forward(inputs)

        return call


def _work_for_ever(forward: Forward, inputs: Arrays) -> None:
    while True:
        forward(inputs)


class Sleeper(Honest):
    """Waits for a machine elsewhere that computes for it: no CPU time is used here."""

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        answer = forward(inputs)

        def call() -> Any:
            time.sleep(0.002)
            return answer

        return call


LEFT_BEHIND = "left-behind-by-hostile"
"""Among the arguments of what the next ones leave behind."""


class LeftSleeping(Honest):
    """Leaves a helper in a session of its own, without parent and environment, as frameworks do. It sleeps."""

    code = "import time; time.sleep(1000)"

    def __init__(self) -> None:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execve(sys.executable, [sys.executable, "-S", "-c", self.code, LEFT_BEHIND], {})
            os._exit(0)
        os.wait()


class LeftBurning(LeftSleeping):
    """It takes a core from the others."""

    code = "while True: pass"
