"""Failures of a real device and real streams. What could end a process runs in one of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from fairlap.engine.cuda.stream_calls import time_on_stream
from fairlap.errors import InvalidRequest

from .separate_process import run_script


def test_a_dead_stream_never_gives_a_figure(torch: Any) -> None:
    pytest.importorskip("cupy")
    run = run_script(
        "import cupy\n"
        "from fairlap.engine.cuda.stream_calls import time_on_stream\n"
        "from fairlap.errors import FairlapError\n"
        "stream = cupy.cuda.Stream(non_blocking=True)\n"
        "stream.synchronize()\n"
        "address = stream.ptr\n"
        "del stream\n"
        "try:\n"
        "    time_on_stream(lambda: None, stream=address, samples=5)\n"
        "except FairlapError as error:\n"
        "    print('refused:', error)\n"
        "else:\n"
        "    print('a figure')\n"
    )
    # A driver may crash on the handle of a stream that is gone; what must not be is a figure.
    assert "a figure" not in run.stdout, run.stdout + run.stderr


@pytest.mark.parametrize("address", [3, 0x1000, 0x1234567890, 2**63])
def test_an_address_that_is_no_stream_is_refused(context: Any, address: int) -> None:
    with pytest.raises(InvalidRequest, match="stream"):
        time_on_stream(lambda: None, stream=address, samples=5)


@pytest.mark.usefixtures("torch")
def test_a_kernel_that_breaks_the_context_ends_the_run_with_its_reason_and_the_samples_before() -> None:
    run = run_script(
        "import torch\n"
        "from fairlap.engine.cuda.libraries import DeviceFailed\n"
        "from fairlap.engine.cuda.stream_calls import time_on_stream\n"
        "from fairlap.engine.measurement import CallableRaised\n"
        "stream = torch.cuda.Stream()\n"
        "table = torch.zeros(10, device='cuda')\n"
        "good = torch.zeros(1, dtype=torch.int64, device='cuda')\n"
        "bad = torch.full((1,), 10**9, dtype=torch.int64, device='cuda')\n"
        "calls = []\n"
        "def work():\n"
        "    calls.append(1)\n"
        "    return table[bad if len(calls) == 20 else good]\n"
        "with torch.cuda.stream(stream):\n"
        "    try:\n"
        "        time_on_stream(work, stream=stream, samples=50, warmup=5, calls_per_sample=1)\n"
        "    except (DeviceFailed, CallableRaised) as error:\n"
        "        print('samples', error.result.samples, error, flush=True)\n"
        "import os; os._exit(0)\n"
    )
    assert "samples " in run.stdout, run.stdout + run.stderr
    assert int(run.stdout.split()[1]) >= 5, run.stdout


def test_a_device_that_nobody_uses_is_not_started() -> None:
    run = run_script(
        "from fairlap.engine.cuda.stream_calls import time_on_stream\n"
        "from fairlap.errors import InvalidRequest\n"
        "try:\n"
        "    time_on_stream(lambda: None, stream=0)\n"
        "except InvalidRequest as error:\n"
        "    assert 'nothing has used CUDA device 0' in str(error), error\n"
        "    print('refused')\n"
    )
    assert run.stdout.strip() == "refused", run.stderr


def test_a_forked_child_is_refused(torch: Any) -> None:
    run = run_script(
        "import os, torch\n"
        "from fairlap.engine.cuda.stream_calls import time_on_stream\n"
        "from fairlap.errors import NotAvailable\n"
        "tensor = torch.zeros(1, device='cuda')\n"
        "time_on_stream(lambda: tensor.add_(1), stream=tensor, samples=5)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try:\n"
        "        time_on_stream(lambda: None, stream=0)\n"
        "    except NotAvailable as error:\n"
        "        os._exit(7 if 'fork' in str(error) else 1)\n"
        "    os._exit(1)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
    )
    assert run.returncode == 0, run.stderr


def test_a_hundred_thousand_samples_leave_nothing_behind(context: Any, own_stream: Any, spinner: Any) -> None:
    def run(samples: int) -> None:
        time_on_stream(
            lambda: spinner.empty(own_stream.cuda_stream),
            stream=own_stream,
            samples=samples,
            warmup=10,
            calls_per_sample=1,
        )

    run(1000)
    context.synchronize()
    free_before = context.free_bytes()
    host_before = _resident_bytes()
    run(100_000)
    for _ in range(20):
        run(100)
    context.synchronize()
    assert free_before - context.free_bytes() < 64 << 20
    assert _resident_bytes() - host_before < 64 << 20


def test_a_thread_without_a_current_context_can_time(context: Any, own_stream: Any, spinner: Any) -> None:
    """As the threads of JAX, TensorFlow and ONNX Runtime leave their caller's."""

    def timed() -> Any:
        def work() -> None:
            with context.pushed():
                spinner.spin_ns(own_stream.cuda_stream, 50_000)

        return time_on_stream(work, stream=own_stream, samples=20, warmup=3, calls_per_sample=1)

    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(timed).result()
    assert not np.isnan(result.device_span_ns).any(), str(result)
    assert result.median_ns > 45_000


def test_launches_that_wait_are_found_and_no_gate_is_used() -> None:
    run = run_script(
        "import os\n"
        "os.environ['CUDA_LAUNCH_BLOCKING'] = '1'\n"
        "from fairlap.engine.cuda.stream_calls import time_on_stream\n"
        "from tests.gpu.proof.driver import PrimaryContext, Spinner\n"
        "context = PrimaryContext()\n"
        "stream, spinner = context.new_own_stream(), Spinner()\n"
        "work = lambda: spinner.spin_ns(stream.cuda_stream, 50_000)\n"
        "result = time_on_stream(work, stream=stream, samples=20, warmup=3, calls_per_sample=1)\n"
        "assert result.settings['gate'] == 'none', str(result)\n"
        "assert not result.invalid, str(result)\n"
        "print('no gate')\n"
    )
    assert run.stdout.strip() == "no gate", run.stdout + run.stderr


def _resident_bytes() -> int:
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * 4096
