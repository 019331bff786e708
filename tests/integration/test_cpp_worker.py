"""A worker that is no Python program: compiled here, asked through the same class, right and timed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from fairlap.launch.worker_lost import WorkerLost
from fairlap.launch.worker_process import WorkerProcess
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import hash_of
from fairlap.scenarios.calls.latency_messages import DrawnCall
from fairlap.worker.guardian import living_processes
from fairlap.worker.protocol import Prepare, Which

SOURCE = Path(__file__).parent / "cpp_worker" / "worker.cpp"
COMPILER = shutil.which(os.environ.get("CXX", "c++"))

pytestmark = [
    pytest.mark.sanitized,
    pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler"),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("cpp_worker") / "worker"
    assert COMPILER is not None
    flags = ["-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([COMPILER, *flags, "-o", built, SOURCE], check=True, timeout=110)
    return built


@pytest.fixture
def weight() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(128, 256)).astype(np.float32)


@pytest.fixture
def request_for(tmp_path: Path, weight: np.ndarray) -> Prepare:
    x = np.random.default_rng(2).normal(size=(16, 256)).astype(np.float32)
    weights, inputs, changed = (tmp_path / f"{name}.safetensors" for name in ("weights", "inputs", "changed"))
    safetensors.write(weights, {"linear.weight": weight, "beside": np.zeros(3, np.float32)})
    safetensors.write(inputs, {"rows": x})
    safetensors.write(changed, {"rows": x[::-1]})
    names = {"input": "rows", "weight": "linear.weight", "output": "product"}
    unseen = [tmp_path / f"unseen-{number}.safetensors" for number in range(2)]
    for number, file in enumerate(unseen):
        safetensors.write(file, {"rows": x[number + 1 :: -1].repeat(16, axis=0)[:16]})
    files = (str(weights), str(inputs), str(changed))
    return Prepare("./worker", "any.model", 16, 1, *files, options=names, unseen=tuple(map(str, unseen)))


def test_a_program_in_another_language_does_the_same_work(
    program: Path, request_for: Prepare, weight: np.ndarray, tmp_path: Path
) -> None:
    answer = tmp_path / "answer.safetensors"
    with WorkerProcess((str(program),), environment=dict(os.environ)) as worker:
        assert worker.hello.language == "c++"
        prepared = worker.prepare(request_for, within_s=60)
        seconds = {}
        both: tuple[Which, Which] = ("inputs", "changed")
        for which in both:
            seconds[which] = worker.answer(which, answer, within_s=60).seconds
            x = safetensors.read(Path(getattr(request_for, which)))["rows"].astype(np.float64)
            np.testing.assert_allclose(safetensors.read(answer)["product"], x @ weight.T, rtol=1e-4, atol=1e-4)
        measured, samples_ns = worker.measure(seconds=0.1, within_s=60)
        drawn = (DrawnCall(at=0.1, inputs=3), DrawnCall(at=0.1, inputs=1), DrawnCall(at=0.6, inputs=2))
        checked, _ = worker.measure(seconds=0.05, within_s=60, drawn=drawn, drawn_file=answer)
        few, few_ns = worker.measure(samples=7, calls_per_sample=2, warmup=1, within_s=60)
        ended = worker.quit()
    assert prepared.weights_hash == hash_of({"linear.weight": weight})
    assert prepared.in_force == {"threads": "1", "precision": "fp32"}
    assert list(worker.phases_s) == ["interpreter", "build", "first_call"]
    assert worker.phases_s["first_call"] == seconds["inputs"]
    assert measured.quantities[0].count == len(samples_ns["wall_ns"]) > 10
    assert (samples_ns["wall_ns"] > 0).all()
    assert [call.number for call in checked.drawn.calls] == [0, 1, 2]
    assert all(call.call_ns > 0 for call in checked.drawn.calls)
    files = (request_for.inputs, request_for.changed, *request_for.unseen)
    for number, call in enumerate(drawn):
        x = safetensors.read(Path(files[call.inputs]))["rows"].astype(np.float64)
        got = safetensors.read(answer)[f"{number}/product"]
        np.testing.assert_allclose(got, x @ weight.T, rtol=1e-4, atol=1e-4)
    assert (few.calls_per_sample, len(few_ns["wall_ns"])) == (2, 7)
    assert ended.memory.bytes["peak"] > 0
    if sys.platform == "linux":
        assert living_processes(worker.session, worker.token) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [({"mode": "grad"}, "it does not differentiate"), ({"threads": 2}, "it has one thread")],
)
def test_what_it_cannot_do_is_unsupported(
    program: Path, request_for: Prepare, change: dict[str, object], message: str
) -> None:
    with WorkerProcess((str(program),), environment={}) as worker, pytest.raises(WorkerLost, match=message) as how:
        worker.prepare(msgspec.structs.replace(request_for, **change), within_s=60)
    assert how.value.outcome == "unsupported"


def test_a_file_that_is_not_there_is_a_failure_with_its_name(program: Path, request_for: Prepare) -> None:
    with WorkerProcess((str(program),), environment={}) as worker, pytest.raises(WorkerLost) as how:
        worker.prepare(msgspec.structs.replace(request_for, weights="/not/there"), within_s=60)
    assert (how.value.outcome, how.value.message) == ("failed", "/not/there is not a safetensors file (in build)")


def test_it_ends_when_its_parent_closes_the_pipe(program: Path) -> None:
    read, write = os.pipe()
    replies, its_write = os.pipe()
    options = ["--read", str(read), "--write", str(its_write), "--parent", str(os.getpid())]
    with subprocess.Popen([program, *options], pass_fds=(read, its_write)) as process:
        for fd in (read, its_write, write):
            os.close(fd)
        assert process.wait(timeout=120) == 0
    os.close(replies)
