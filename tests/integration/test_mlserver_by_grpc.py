"""MLServer answers by gRPC as by HTTP, and its streams are read whole: a real server of the protocol.

Run it with ``mlserver`` on PATH, from an environment of its own: ``pip install mlserver==1.7.1``.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
import pytest
from fairlap.frameworks.adapter_parts.http.client import HttpClient
from fairlap.frameworks.adapter_parts.http.http_options import HttpOptions
from fairlap.models.spec import Spec, Tensor
from fairlap.request.fields.server_address import UNENCRYPTED, server_address
from fairlap.request.names import contestant_named
from fairlap.scenarios.streams.answers import answer_in
from fairlap.scenarios.streams.clients.client import Certificates
from fairlap.scenarios.streams.clients.grpc_client import GrpcStreamClient
from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.servers import stream_server
from machine_marks import needs

needs("grpc", reason="needs the extra grpc; `make test` installs it and runs this")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("mlserver") is None, reason="needs mlserver on PATH"),
]

RUNTIME = """
from mlserver import MLModel
from mlserver.codecs import NumpyCodec, StringCodec
from mlserver.types import InferenceResponse

class Doubler(MLModel):
    async def load(self):
        return True

    async def predict(self, payload):
        doubled = 2 * NumpyCodec.decode_input(payload.inputs[0])
        return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output("y", doubled)])

class Talker(MLModel):
    async def load(self):
        return True

    async def predict_stream(self, payloads):
        [request] = [each async for each in payloads]
        [text] = StringCodec.decode_input(request.inputs[0])
        for place in range(request.parameters.model_dump()["max_tokens"]):
            output = StringCodec.encode_output("output", [f" {text}{place}"])
            yield InferenceResponse(model_name=self.name, outputs=[output])
"""
TENSOR = {"datatype": "FP32", "shape": [-1, 4]}
X = np.arange(8, dtype=np.float32).reshape(2, 4) / 3


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    folder = tmp_path_factory.mktemp("mlserver")
    found = {name: free_port() for name in ("http_port", "grpc_port", "metrics_port")}
    write(folder / "settings.json", {**found, "host": "127.0.0.1", "parallel_workers": 0, "gzip_enabled": False})
    double = {"inputs": [{"name": "x", **TENSOR}], "outputs": [{"name": "y", **TENSOR}]}
    write(folder / "double" / "model-settings.json", {"name": "double", "implementation": "runtime.Doubler", **double})
    write(folder / "talk" / "model-settings.json", {"name": "talk", "implementation": "runtime.Talker"})
    (folder / "runtime.py").write_text(RUNTIME)
    process = subprocess.Popen(
        [str(shutil.which("mlserver")), "start", "."],
        cwd=folder, env={"PYTHONPATH": str(folder)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_until_ready(f"http://127.0.0.1:{found['http_port']}/v2/health/ready")
        yield found
    finally:
        process.kill()
        process.wait()


def write(file: Path, settings: object) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(settings))


def wait_until_ready(url: str, within_s: float = 120.0) -> None:
    deadline_s = time.monotonic() + within_s
    while time.monotonic() < deadline_s:
        try:
            with urlopen(url, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.2)
    raise AssertionError("MLServer did not become ready")


@pytest.mark.parametrize("kind", ["grpc", "http"])
def test_a_model_answers_bit_for_bit(kind: str, ports: dict[str, int]) -> None:
    tensors = [(Tensor(name, ("batch", 4)),) for name in "xy"]
    spec = Spec(
        "double", "doubling", tensors[0], tensors[1], weights=(), parameters=0, gmacs_per_item=None, published=""
    )
    path = "" if kind == "grpc" else "/v2/models/double"
    address = server_address(f"{kind}://127.0.0.1:{ports[f'{kind}_port']}{path}", schemes=UNENCRYPTED)
    client = HttpClient(address, HttpOptions(timeout_s=30.0, model="double" if kind == "grpc" else ""), spec, 2)
    assert np.array_equal(client.outputs(client.bind({"x": X})())["y"], 2 * X)
    assert client.protocol.server == "mlserver 1.7.1"
    assert client.has_metadata


@pytest.mark.parametrize("fields", ["forced", "counted", "plain"])
def test_a_stream_is_read_whole(fields: str, ports: dict[str, int]) -> None:
    address = f"grpc://127.0.0.1:{ports['grpc_port']}:model=talk:timeout=30s"
    server = stream_server(contestant_named(address), chat=False, remote=False)
    client = GrpcStreamClient(server, Certificates().context(), 5)
    try:
        assert client.connect()
        raw = client.ask(server.body(Prompt(prompt="Hi"), 5, fields))  # type: ignore[arg-type]
    finally:
        client.close()
    answer = answer_in(raw, server)
    assert (answer.failure, answer.tokens, answer.counted_by) == (None, 5, "events")
    assert answer.text == " Hi0 Hi1 Hi2 Hi3 Hi4"


def test_a_model_that_is_not_there_is_a_status(ports: dict[str, int]) -> None:
    address = f"grpc://127.0.0.1:{ports['grpc_port']}:model=other:timeout=30s"
    server = stream_server(contestant_named(address), chat=False, remote=False)
    client = GrpcStreamClient(server, Certificates().context(), 5)
    failure = answer_in(client.ask(server.body(Prompt(prompt="Hi"), 5, "forced")), server).failure
    client.close()
    assert failure is not None
    assert (failure.code, "NOT_FOUND" in failure.text) == ("E_STREAM_STATUS", True)
