"""What Paddle's adapter does on a GPU uses names that an installed Paddle has, also a build for the processor."""

from __future__ import annotations

import json
import subprocess

import pytest
from framework_python import python_with
from frameworks_on_fakes import paddle_on_cuda

pytestmark = [pytest.mark.heavy_environments, pytest.mark.timeout(1800)]

ASK = """
import inspect, json, sys
import paddle
from paddle.base import core
cuda = paddle.device.cuda
def parameters(function):
    return list(inspect.signature(function).parameters)
print(json.dumps({
    "version": paddle.__version__,
    "core": [name for name in sys.argv[1].split(",") if hasattr(core, name)],
    "cuda": {name: parameters(getattr(cuda, name)) for name in sys.argv[2].split(",") if hasattr(cuda, name)},
    "device": {name: parameters(getattr(paddle.device, name))
               for name in ("current_stream", "set_device", "get_cudnn_version")},
    "stream": paddle.device.Stream.__cuda_stream__.__code__.co_argcount,
    "place": str(paddle.to_tensor([1.0]).place),
    "got": paddle.device.get_device(),
    "devices": cuda.device_count(),
    "with_cuda": paddle.is_compiled_with_cuda(),
    "fallback": paddle.get_flags(["FLAGS_enable_api_kernel_fallback"])["FLAGS_enable_api_kernel_fallback"],
}))
"""


def test_paddle_has_these_names() -> None:
    stand_in = paddle_on_cuda.Machine(lambda _stream: None, 0, 0).module()
    of_core = [name for name in vars(stand_in.base.core) if name != "set_num_threads"]
    of_cuda = list(vars(stand_in.device.cuda))
    with python_with("paddle") as python:
        asked = subprocess.run(
            [python, "-c", ASK, ",".join([*of_core, "set_num_threads"]), ",".join(of_cuda)],
            capture_output=True,
            text=True,
            check=True,
        )
    found = json.loads(asked.stdout.splitlines()[-1])
    assert found["version"].startswith(stand_in.__version__)
    assert set(found["core"]) >= {"set_num_threads"}
    assert set(found["core"]) >= (set(of_core) if found["with_cuda"] else set())
    takes_a_device = {name: ["device"] for name in of_cuda if name != "device_count"}
    assert found["cuda"] == {**takes_a_device, "device_count": []}
    assert found["device"] == {"current_stream": ["device"], "set_device": ["device"], "get_cudnn_version": []}
    assert found["stream"] == 1
    if not found["with_cuda"]:
        assert (found["devices"], found["place"], found["got"]) == (0, "Place(cpu)", "cpu")
    assert found["fallback"] is True
