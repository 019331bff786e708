"""The gradients and outputs of a user's model, computed in a process of their own: the reference of its training."""

from __future__ import annotations

import atexit
import itertools
import subprocess
import threading
import weakref
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fairlap import quantity_text
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.launch.opened_source import passed_to, process_of_source
from fairlap.machine.files.scratch_folder import ScratchFolder
from fairlap.machine.programs.process_tree import ProcessTree, children
from fairlap.models.array_files import safetensors
from fairlap.models.sources.bundle import bundle_in
from fairlap.models.sources.confinement import LIMIT_S
from fairlap.models.sources.learning.serving import INPUT, WEIGHT, Ask, Begin, Computed, as_slopes
from fairlap.models.spec import LABELS
from fairlap.models.training.reference import Batch, NotComputed, OwnSlopes, Slopes

Array = Any


_STOPPED_WITHIN_S = 1.0


class SlopesOfSource(OwnSlopes):
    """Starts its process when it is first asked, and stops it between answers.

    Threads of a framework spin for a while after they have computed, and contestants are timed meanwhile.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._bundle = folder, bundle_in(folder)
        self._trained = [weight.name for weight in self._bundle.spec.weights if weight.trained]
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped: ProcessTree | None = None
        self._scratch = ScratchFolder()
        self._numbers = itertools.count()
        ended = weakref.ref(self)
        atexit.register(_close, ended)

    def slopes(self, weights: Mapping[str, Array], batch: Batch, *, training: bool) -> Slopes:
        """Ask the process; raise NotComputed where it fails."""
        found = as_slopes(self._answered(weights, batch, partial(Ask, training=training)))
        return Slopes(found.loss, {name: found.gradients[name] for name in self._trained}, found.averages)

    def outputs(self, weights: Mapping[str, Array], inputs: Mapping[str, Array], batch: int) -> dict[str, Array]:
        return self._answered(weights, Batch(inputs, None), partial(Ask, batch=batch))

    def _answered(
        self, weights: Mapping[str, Array], batch: Batch, asked: Callable[[str, str], Ask]
    ) -> dict[str, Array]:
        given, answer = (
            self._scratch.path / f"{name}-{next(self._numbers)}.safetensors" for name in ("given", "answer")
        )
        arrays = {WEIGHT + name: array for name, array in weights.items()}
        arrays |= {INPUT + name: np.asarray(array) for name, array in batch.inputs.items()}
        if batch.labels is not None:
            arrays[LABELS] = batch.labels
        safetensors.write(given, arrays)
        outcome = self._computed(asked(str(given), str(answer)))
        if outcome.error:
            raise NotComputed(f"the reference of {self._bundle.source.text} failed: {outcome.error}")
        found = {name: np.array(array) for name, array in safetensors.read(answer).items()}
        for file in (given, answer):
            file.unlink()
        return found

    def _computed(self, ask: Ask) -> Computed:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        if self._stopped is not None:
            self._stopped.thaw()
        late = threading.Event()

        def give_up() -> None:
            late.set()
            process.terminate()

        ended = threading.Timer(LIMIT_S, give_up)
        ended.daemon = True
        ended.start()
        try:
            process.stdin.write(msgspec.json.encode(ask) + b"\n")
            process.stdin.flush()
            found = msgspec.json.decode(process.stdout.readline(), type=Computed)
        except (OSError, *NOT_THE_DOCUMENT):
            self.close()
            text = self._bundle.source.text
            if late.is_set():
                within = quantity_text.rough_duration(LIMIT_S)
                raise NotComputed(
                    f"the reference of {text} was not computed within {within}", code="E_TIMEOUT"
                ) from None
            raise NotComputed(f"the process that computes the gradients of {text} ended") from None
        finally:
            ended.cancel()
        self._stop(process.pid)
        return found

    def _stop(self, guardian: int) -> None:
        """Stop all but the guardian, where the system lists processes."""
        if self._stopped is None and (first := children(guardian)):
            self._stopped = ProcessTree(guardian, first[0])
        if self._stopped is not None:
            self._stopped.freeze(_STOPPED_WITHIN_S)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            source, files = self._bundle.source, tuple(path for path, _ in self._bundle.files)
            self._process = process_of_source(
                "fairlap.models.sources.learning.serving", errors=subprocess.DEVNULL, passed=passed_to(self._folder)
            )
            assert self._process.stdin is not None
            begin = Begin(source, files, str(self._folder), str(self._scratch.path))
            self._process.stdin.write(msgspec.json.encode(begin) + b"\n")
        return self._process

    def close(self) -> None:
        process, self._process, self._stopped = self._process, None, None
        if process is not None:
            process.terminate()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        self._scratch.remove()


def _close(slopes: Callable[[], SlopesOfSource | None]) -> None:
    if (found := slopes()) is not None:
        found.close()


@cache
def slopes_of(folder: Path) -> SlopesOfSource:
    return SlopesOfSource(folder)
