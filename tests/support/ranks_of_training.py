"""Steps of training of a built-in model, shared by several processes that each prepare the adapter as one rank.

    python tests/support/ranks_of_training.py FOLDER

is one of them. It takes the steps on its part of the batches in FOLDER, or answers its part of the first, and leaves
the state after them, or the answer, there.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from fairlap.data.labelled.built_in import labelled_set
from fairlap.frameworks.contract import Settings
from fairlap.frameworks.registry import framework_named
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays
from fairlap.models.draw import draw_weights
from fairlap.models.registry import find, reference_at
from fairlap.models.spec import LABELS
from fairlap.models.training.exercise import Exercise
from fairlap.models.training.reference import LOSS, Batch, State
from fairlap.models.workload import Workload
from fairlap.request.fields.scale import Rank
from fairlap.request.fields.training import Training
from fairlap.request.names import contestant_named
from fairlap.request.work import Mode
from fairlap.worker.ranks.launchers import mpirun_program

_WEIGHTS, _TASK = "weights.safetensors", "task.json"
_OWN_NUMBER = "FAIRLAP_RANK"
_NUMBERS = ("OMPI_COMM_WORLD_RANK", _OWN_NUMBER)
_WITHIN_S = 240.0


class Task(msgspec.Struct, frozen=True):
    model: str
    contestant: str
    training: Training
    addresses: tuple[str, ...]  # of all ranks
    mode: Mode = "train"
    goes_on: bool = False  # from what it read after half of the steps
    exchange: bool = True  # False for ordinary contestants, each of which trains on its part


def exercise_of(model: str, steps: int, batch: int, training: Training | None = None) -> Exercise:
    """On batches of all ranks together."""
    found = find(model)
    spec = found.spec
    data = labelled_set(spec.data_set)
    order = np.random.default_rng(1).permutation(len(data.labels))
    rows = np.resize(order, steps * batch).reshape(steps, batch)
    batches = [Batch({name: array[each] for name, array in data.inputs.items()}, data.labels[each]) for each in rows]
    forward = reference_at(found.package).forward
    return Exercise(spec, forward, training or spec.training, State(dict(draw_weights(spec, 0))), batches)


def ends_of_ranks(
    contestant: str,
    exercise: Exercise,
    ranks: int,
    folder: Path,
    *,
    goes_on: bool = False,
    exchange: bool = True,
) -> list[Arrays]:
    """Where each rank ends, with the mean of all ranks' last losses as its own."""
    addresses = _free_addresses(ranks)
    task = Task(exercise.spec.name, contestant, exercise.training, addresses, goes_on=goes_on, exchange=exchange)
    _write(task, exercise, folder)
    framework = framework_named(contestant_named(contestant).framework)
    command = [sys.executable, __file__, str(folder)]
    if framework.rank_launcher == "mpirun":
        program = mpirun_program(os.environ.get("PATH"))
        launched = [[program, "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), *command]]
    else:
        launched = [command] * ranks
    _run(launched, folder, first=0)
    ends = [dict(safetensors.read(folder / f"state-{number}.safetensors")) for number in range(ranks)]
    loss = np.mean([end[LOSS] for end in ends], dtype=np.float64)
    return [{**end, LOSS: np.asarray(loss, np.float32)} for end in ends]


def answer_of_last_rank(contestant: str, exercise: Exercise, ranks: int, folder: Path) -> Arrays:
    """To its part of the first batch. It runs alone: no other rank is started."""
    task = Task(exercise.spec.name, contestant, exercise.training, _free_addresses(ranks), "infer")
    _write(task, exercise, folder)
    _run([[sys.executable, __file__, str(folder)]], folder, first=ranks - 1)
    return safetensors.read(folder / f"state-{ranks - 1}.safetensors")


def _write(task: Task, exercise: Exercise, folder: Path) -> None:
    (folder / _TASK).write_bytes(msgspec.json.encode(task))
    safetensors.write(folder / _WEIGHTS, {name: np.asarray(each) for name, each in exercise.start.weights.items()})
    for number, batch in enumerate(exercise.batches):
        assert batch.labels is not None
        safetensors.write(folder / f"batch-{number:03}.safetensors", {**batch.inputs, LABELS: batch.labels})


def _run(commands: list[list[str]], folder: Path, *, first: int) -> None:
    """To their ends, whatever becomes of them. ``first`` is the number of the first one."""
    with ExitStack() as stack:
        outputs = [stack.enter_context((folder / f"output-{number}").open("w+")) for number in range(len(commands))]
        processes = []
        for number, (command, output) in enumerate(zip(commands, outputs, strict=True), first):
            environment = {**os.environ, _OWN_NUMBER: str(number)}
            process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
            stack.callback(process.wait)
            stack.callback(process.kill)
            processes.append(process)
        until = time.monotonic() + _WITHIN_S
        while any(process.poll() is None for process in processes):
            failed = [number for number, process in enumerate(processes) if process.poll()]
            if failed or time.monotonic() > until:
                break
            time.sleep(0.05)
        if any(process.poll() != 0 for process in processes):
            texts = []
            for number, output in enumerate(outputs):
                output.seek(0)
                texts.append(f"process {number} ended with {processes[number].poll()}:\n{output.read()[-3000:]}")
            raise RuntimeError("\n".join(texts))


def _free_addresses(count: int) -> tuple[str, ...]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return tuple(f"127.0.0.1:{each.getsockname()[1]}" for each in sockets)


def take(folder: Path) -> None:
    task = msgspec.json.decode((folder / _TASK).read_bytes(), type=Task)
    number = next(int(os.environ[name]) for name in _NUMBERS if name in os.environ)
    found, name = find(task.model), contestant_named(task.contestant)
    framework, ranks = framework_named(name.framework), len(task.addresses)
    rank = Rank(number, ranks, task.addresses[0], task.addresses) if task.exchange else None
    settings = Settings(1, name.variant, rank=rank)
    os.environ.update(framework.environment_for(settings))
    host, _, port = task.addresses[0].rpartition(":")
    # As torchrun sets them.
    os.environ |= {"MASTER_ADDR": host, "MASTER_PORT": port, "RANK": str(number), "WORLD_SIZE": str(ranks)}
    batches = [_part(dict(safetensors.read(file)), number, ranks) for file in sorted(folder.glob("batch-*"))]
    inputs = {name: array for name, array in batches[0].items() if name != LABELS}
    weights = safetensors.read(folder / _WEIGHTS)
    work = Workload(
        found.spec,
        found.package,
        len(batches[0][LABELS]),
        task.mode,
        "fp32",
        weights,
        inputs,
        batches[0][LABELS],
        task.training if task.mode == "train" else None,
    )
    made = framework().prepare(work, settings, lambda _: nullcontext())
    file = folder / f"state-{number}.safetensors"
    if task.mode == "infer":
        safetensors.write(file, made.outputs(made.bind(inputs)()))
        return
    training = made.training
    assert training is not None
    training.reset()
    result: Any = None
    for step, batch in enumerate(batches):
        if task.goes_on and step == len(batches) // 2:
            state = training.read()
            training.reset()
            training.restore(state)
        result = made.bind(batch)()
        if made.done is not None:
            made.done(result)
    end = {**training.read(), LOSS: made.outputs(result)[LOSS]}
    if made.leave is not None:
        made.leave()
    safetensors.write(file, {key: np.asarray(array, np.float32) for key, array in end.items()})


def _part(batch: Arrays, number: int, ranks: int) -> dict[str, Any]:
    def own(array: Any) -> Any:
        size = len(array) // ranks
        return np.ascontiguousarray(array[number * size : (number + 1) * size])

    return {name: own(array) for name, array in batch.items()}


if __name__ == "__main__":
    take(Path(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)  # as a worker ends: without exit handlers
