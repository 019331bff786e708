"""A framework whose ranks train with NumPy and average their gradients over a connection to rank 0.

They do so honestly or with one mistake or misfortune. Its ranks start in a second, so that many can be lost in a test.

Slow ranks and slow exchanges wait by the clock, so that a test knows what should be found.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from fairlap.frameworks.contract import RANKS, Contestant, Phase, RankLauncher, Settings
from fairlap.models.arrays import Arrays
from fairlap.models.training import reference
from fairlap.models.training.reference import Batch, Mistake, Slopes, State
from fairlap.models.workload import Workload
from fairlap.request.fields.scale import Rank
from installed_package import install_frameworks
from numpy_framework import NumpyFramework, Trainer, in_float32, in_force

if TYPE_CHECKING:
    import pytest

PLANTED_S = 0.02
_FATAL_STEP = 12

MISTAKES = ("no-exchange", "adds-up", "halves-twice", "same-part", "drops-a-sample", "stale-rank", "other-weights")
MISFORTUNES = ("dies", "hangs", "hangs-natively", "raises", "dies-preparing", "hangs-preparing", "says-taken")


def install_ranked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classes = {"ranked-numpy": "RankedNumpy", "ranked-mpirun": "RankedByMpirun", "no-ranks": "NoRanks"}
    install_frameworks(folder, monkeypatch, {name: f"ranked_numpy:{each}" for name, each in classes.items()})
    monkeypatch.setenv("FAIRLAP_CACHE", str(folder / "cache"))


class RankedNumpy(NumpyFramework):
    name = "ranked-numpy"
    modes = ("infer", "train")
    variants = ("", *MISTAKES, *MISFORTUNES, "slow-exchange", "slow-rank", "refuses")
    rank_launcher: ClassVar[RankLauncher] = "processes"

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        rank = wanted.rank
        _misfortune_in_preparing(rank, wanted.variant)
        cores = ",".join(map(str, sorted(os.sched_getaffinity(0))))
        found = {**in_force(work, wanted), "cores_found": cores}
        if work.mode == "infer":
            return _answering(work, found)
        with phase("build"):
            ring = None if rank is None else Exchange(rank, wanted.variant)
            trainer = RankTrainer(work, wanted.variant, ring)
        ranks = {} if rank is None else {RANKS: f"averages, sockets, {rank.count} ranks"}
        return trainer.contestant(wanted, in_force={**found, **ranks})


class RankedByMpirun(RankedNumpy):
    name = "ranked-mpirun"
    rank_launcher: ClassVar[RankLauncher] = "mpirun"


class NoRanks(RankedNumpy):
    name = "no-ranks"
    rank_launcher: ClassVar[RankLauncher] = ""


def _misfortune_in_preparing(rank: Rank | None, variant: str) -> None:
    if rank is None:
        return
    if variant == "says-taken" and rank.number == 0:
        raise OSError(f"bind to {rank.coordinator}: Address already in use")
    if rank.number != 1:
        return
    if variant == "dies-preparing":
        os.kill(os.getpid(), signal.SIGKILL)
    if variant == "hangs-preparing":
        time.sleep(3600)


def _answering(work: Workload, found: dict[str, str]) -> Contestant:
    forward = work.implementation_of_reference().forward
    weights = {name: np.asarray(array) for name, array in work.weights.items()}
    return Contestant(
        bind=lambda arrays: lambda: forward(weights, {name: np.asarray(each) for name, each in arrays.items()}),
        done=None,
        outputs=in_float32,
        weights=lambda: weights,
        in_force=found,
    )


class Exchange:
    """All ranks send to rank 0, which answers each of them."""

    def __init__(self, rank: Rank, variant: str) -> None:
        self.rank, self.variant = rank, variant
        host, _, port = rank.coordinator.rpartition(":")
        if rank.number == 0:
            with socket.create_server((host, int(port))) as listener:
                joined: dict[int, socket.socket] = {}
                while len(joined) < rank.count - 1:
                    connection, _ = listener.accept()
                    joined[connection.recv(1)[0]] = connection
            self._others = [joined[number] for number in sorted(joined)]
        else:
            self._others = [_connected(host, int(port))]
            self._others[0].sendall(bytes([rank.number]))
        for each in self._others:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def averaged(self, arrays: dict[str, Any]) -> dict[str, Any]:
        if self.variant == "slow-exchange":
            time.sleep(PLANTED_S)
        together = np.concatenate([array.ravel() for array in arrays.values()]).astype(np.float32)
        total = self.added(together)
        divided_by = {"adds-up": 1, "halves-twice": self.rank.count**2}.get(self.variant, self.rank.count)
        return _like(arrays, total / np.float32(divided_by))

    def added(self, own: np.ndarray) -> np.ndarray:
        if self.rank.number:
            self._others[0].sendall(own.tobytes())
            return self._received(self._others[0], len(own))
        total = own.copy()
        for each in self._others:
            total += self._received(each, len(own))
        for each in self._others:
            each.sendall(total.tobytes())
        return total

    def of_rank_0(self, array: np.ndarray) -> np.ndarray:
        added = self.added((array if self.rank.number == 0 else np.zeros_like(array)).astype(np.float32).ravel())
        return added.reshape(array.shape).astype(array.dtype)

    def _received(self, connection: socket.socket, numbers: int) -> np.ndarray:
        wanted, found = 4 * numbers, bytearray()
        while len(found) < wanted:
            chunk = connection.recv(wanted - len(found))
            if not chunk:
                raise ConnectionError("another rank has broken off")
            found += chunk
        return np.frombuffer(bytes(found), np.float32)


def _connected(host: str, port: int) -> socket.socket:
    until_s = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection((host, port), timeout=20)
        except OSError:
            if time.monotonic() > until_s:
                raise
            time.sleep(0.01)


def _like(arrays: dict[str, Any], together: np.ndarray) -> dict[str, Any]:
    ends = np.cumsum([array.size for array in arrays.values()])[:-1]
    parts: Sequence[Any] = np.split(together, ends)
    return {name: part.reshape(array.shape) for (name, array), part in zip(arrays.items(), parts, strict=True)}


class RankTrainer(Trainer):
    """With what the ranks exchange between the two halves of a step."""

    def __init__(self, work: Workload, variant: str, exchange: Exchange | None) -> None:
        super().__init__(work, variant)
        self._exchange = exchange
        self._number = _number() if exchange is None else exchange.rank.number
        self._steps = 0

    def weights(self) -> dict[str, Any]:
        shift = 1 if self._variant == "other-weights" and self._number else 0
        return {name: np.array(array) + np.float32(shift) for name, array in self.state.weights.items()}

    def bind(self, arrays: Arrays) -> Callable[[], float]:
        if self._exchange is not None and self._variant == "same-part":
            arrays = {name: self._exchange.of_rank_0(array) for name, array in arrays.items()}
        if self._exchange is not None and self._variant == "drops-a-sample" and self._number:
            arrays = {name: array[:-1] for name, array in arrays.items()}
        return super().bind(arrays)

    def _step(self, batch: Batch) -> float:
        self._steps += 1
        if self._exchange is not None and self._number == 1 and self._steps == _FATAL_STEP:
            _misfortune(self._variant)
        if self._variant == "slow-rank" and self._number == 1:
            time.sleep(PLANTED_S)
        slopes = reference._slopes(self._work.spec, self._forward, self.state, batch, np.float32)
        gradients = slopes.gradients
        if self._exchange is not None and self._variant != "no-exchange":
            gradients = self._exchange.averaged(gradients)
        before = State(dict(self.state.weights), {kind: dict(of) for kind, of in self.state.kept.items()})
        averaged = Slopes(slopes.loss, gradients, slopes.averages)
        reference._take(self._training, self.state, averaged, np.float32, Mistake())
        if self._variant == "stale-rank" and self._exchange is not None and self._number:
            before.step = self.state.step
            self.state = before
        return slopes.loss


def _number() -> int:
    """Of a rank that steps alone."""
    return int(os.environ.get("FAIRLAP_RANK", "0"))


def _misfortune(variant: str) -> None:
    if variant == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if variant == "hangs":
        time.sleep(3600)
    if variant == "hangs-natively":
        ctypes.PyDLL(None).pause()  # and holds the interpreter
    if variant == "raises":
        raise ValueError("rank 1 cannot go on")
