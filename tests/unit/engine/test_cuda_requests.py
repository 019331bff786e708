"""Bad input gets a clear error before anything runs, and a machine without CUDA a clear reason."""

from __future__ import annotations

import os
import subprocess
import sys
import types

import pytest
from fairlap.engine.cuda.libraries import cupti_places
from fairlap.engine.cuda.request import Rotate
from fairlap.engine.cuda.stream_calls import time_on_stream
from fairlap.engine.cuda.streams import stream_of
from fairlap.errors import InvalidRequest


class Protocol:
    def __init__(self, answer: object) -> None:
        self.answer = answer

    def __cuda_stream__(self) -> object:
        return self.answer


class Session:
    """As far as a stream is concerned, an ONNX Runtime session."""

    def __init__(self, options: dict[str, dict[str, str]]) -> None:
        self.options = options

    def get_providers(self) -> list[str]:
        return list(self.options)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return self.options


@pytest.mark.parametrize("address", [0, 1, 2, 0x7F00DEADBEE0, 2**64 - 1])
def test_an_integer_is_an_address(address: int) -> None:
    assert stream_of(address).address == address


@pytest.mark.parametrize("stream", [None, "hidden"])
def test_hidden_streams_have_no_address(stream: object) -> None:
    assert stream_of(stream, 1).address is None
    assert stream_of(stream, 1).device == 1


def test_the_cuda_stream_protocol_is_spoken() -> None:
    stream = Protocol((0, 4096))
    assert stream_of(stream).address == 4096
    assert stream_of(stream).owner is stream


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (True, "True"),
        (-1, "between 0"),
        (2**64, "between 0"),
        (1.5, "float"),
        ("cuda:0", "str"),
        (object(), "object"),
        (Protocol((1, 4096)), "version 1"),
        (Protocol(4096), "4096"),
        (Protocol((0, "x")), "'x'"),
        (Session({"CPUExecutionProvider": {}}), "user_compute_stream"),
        ({"device_id": "0"}, "user_compute_stream"),
        ({"user_compute_stream": "abc"}, "abc"),
        ([], "user_compute_stream"),
    ],
)
def test_what_is_no_stream_is_refused_with_its_reason(stream: object, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        stream_of(stream)


@pytest.mark.parametrize("device", [-1, True, "0", 1.0])
def test_a_device_is_a_number(device: object) -> None:
    with pytest.raises(InvalidRequest, match="CUDA device"):
        stream_of(0, device)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "source",
    [
        Session(
            {"CUDAExecutionProvider": {"user_compute_stream": "4096", "device_id": "1"}, "CPUExecutionProvider": {}}
        ),
        {"user_compute_stream": "4096", "device_id": 1},
        ("CUDAExecutionProvider", {"user_compute_stream": "4096", "device_id": "1"}),
        [("CUDAExecutionProvider", {"user_compute_stream": 4096, "device_id": "1"}), "CPUExecutionProvider"],
    ],
)
def test_the_stream_of_onnx_runtime_is_the_one_it_was_given(source: object) -> None:
    stream = stream_of(source)
    assert (stream.address, stream.device) == (4096, 1)


def test_a_stream_on_another_device_than_the_one_named_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"device 1, .*device 0"):
        stream_of({"user_compute_stream": "4096", "device_id": "1"}, 0)


class _Device:
    def __init__(self, kind: str, index: int) -> None:
        self.type = kind
        self.index = index

    def __str__(self) -> str:
        return self.type


class _TorchStream:
    def __init__(self, address: int, index: int) -> None:
        self.cuda_stream = address
        self.device = _Device("cuda", index)


class _Tensor:
    def __init__(self, device: _Device) -> None:
        self.device = device


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """As much of PyTorch as a stream needs."""
    module = types.ModuleType("torch")
    cuda = types.SimpleNamespace(Stream=_TorchStream, current_stream=lambda device: _TorchStream(0, device.index))
    for name, value in {"cuda": cuda, "Tensor": _Tensor, "device": _Device}.items():
        setattr(module, name, value)
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def test_a_torch_stream_gives_its_address_and_device(torch: types.ModuleType) -> None:
    stream = stream_of(_TorchStream(4096, 1))
    assert (stream.address, stream.device) == (4096, 1)


def test_a_torch_device_or_tensor_stands_for_the_current_stream_there(torch: types.ModuleType) -> None:
    for stream in (_Device("cuda", 1), _Tensor(_Device("cuda", 1))):
        assert stream_of(stream).address == 0
        assert stream_of(stream).device == 1


def test_a_cpu_tensor_has_no_stream(torch: types.ModuleType) -> None:
    with pytest.raises(InvalidRequest, match="cpu"):
        stream_of(_Tensor(_Device("cpu", -1)))


def test_a_cupy_stream_gives_its_pointer(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = type("Stream", (), {"__module__": "cupy.cuda.stream", "ptr": 4096, "device_id": -1})
    assert stream_of(kind()).address == 4096
    assert stream_of(kind()).device is None


def test_a_framework_that_hides_its_streams_is_named() -> None:
    kind = type("ArrayImpl", (), {"__module__": "jaxlib._jax"})
    with pytest.raises(InvalidRequest, match="JAX"):
        stream_of(kind())


def test_an_event_is_no_stream() -> None:
    kind = type("Event", (), {"__module__": "torch.cuda"})
    with pytest.raises(InvalidRequest, match="event"):
        stream_of(kind())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "fastest"}, "method must be one of"),
        ({"method": None}, "method must be one of"),
        ({"gate": "open"}, "gate must be one of"),
        ({"gate": "spin", "method": "kernel_sum"}, "goes with method='device_span'"),
        ({"cache": "cold"}, "cache must be one of .* or Rotate"),
        ({"cache": "flush", "calls_per_sample": 4}, "find the cache warm"),
        ({"cache": "flush", "method": "host_issue"}, "no cache to flush"),
        ({"cache": Rotate([(1,), (2,)]), "args": (1,)}, "leave args= out"),
        ({"graph": 1}, "graph must be True or False"),
        ({"guard": "yes"}, "guard must be True or False"),
        ({"graph": True, "done": print}, "nothing to wait for"),
        ({"stream": "hidden"}, "needs the stream"),
        ({"stream": "hidden", "method": "context_span", "graph": True}, "captured on a stream"),
        ({"timeout_s": 0}, "timeout_s must be"),
        ({"timeout_s": float("nan")}, "timeout_s must be"),
        ({"gate_timeout_s": -1}, "gate_timeout_s must be"),
        ({"samples": 0}, "samples must"),
        ({"samples": -3}, "samples must"),
        ({"seconds": float("inf")}, "seconds must"),
        ({"target": float("nan")}, "target must"),
        ({"warmup": -1}, "warmup must"),
        ({"calls_per_sample": 0}, "calls_per_sample must"),
        ({"args": [1]}, "args must be a tuple"),
        ({"kwargs": {1: 2}}, "must be strings"),
        ({"done": 3}, "done must be callable"),
    ],
)
def test_a_wrong_request_is_refused_before_anything_runs(options: dict[str, object], message: str) -> None:
    calls: list[int] = []
    with pytest.raises(InvalidRequest, match=message):
        time_on_stream(lambda: calls.append(1), **{"stream": 0, **options})  # type: ignore[arg-type]
    assert calls == []


@pytest.mark.parametrize("fn", [3, None, "print"])
def test_what_cannot_be_called_is_refused(fn: object) -> None:
    with pytest.raises(InvalidRequest, match="callable"):
        time_on_stream(fn, stream=0)


@pytest.mark.parametrize("sets", [[], [(1,)], [1, 2], "ab", 5, [[1], [2]]])
def test_a_rotation_is_two_or_more_tuples(sets: object) -> None:
    with pytest.raises(InvalidRequest):
        Rotate(sets)  # type: ignore[arg-type]


def test_the_library_of_the_drivers_own_release_is_tried_first(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path_factory.mktemp("site")
    for name in ("nvidia/cu13/lib/libcupti.so.13", "nvidia/cuda_cupti/lib/libcupti.so.12"):
        file = site / name
        file.parent.mkdir(parents=True)
        file.touch()
    monkeypatch.setattr(sys, "path", [str(site)])
    assert [place.rpartition(".")[2] for place in cupti_places(13000) if str(site) in place] == ["13", "12"]
    assert [place.rpartition(".")[2] for place in cupti_places(12040) if str(site) in place] == ["12", "13"]


def test_without_a_driver_the_reason_is_an_answer() -> None:
    script = (
        "from fairlap.engine import floor\n"
        "from fairlap.engine.cuda.stream_calls import time_on_stream\n"
        "from fairlap.errors import NotAvailable\n"
        "floors = floor()\n"
        "assert floors['cuda'] is None and 'could not be loaded' in floors['cuda_absent'], floors\n"
        "try:\n"
        "    time_on_stream(print, stream=0)\n"
        "except NotAvailable as error:\n"
        "    assert 'there is no CUDA here' in str(error), error\n"
        "else:\n"
        "    raise SystemExit('no error')\n"
    )
    environment = {**os.environ, "FAIRLAP_LIBCUDA": "/nowhere/libcuda.so.1"}
    run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
