"""A server that already runs is a contestant: what it is sent, and what becomes of answers that are none."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.frameworks.adapter_parts.http import connection
from fairlap.frameworks.adapter_parts.http.client import HttpClient
from fairlap.frameworks.adapter_parts.http.http_options import HttpOptions, http_options_in
from fairlap.frameworks.contract import Unsupported
from fairlap.frameworks.contract_parts.called_programs import ServerFailed
from fairlap.models.spec import Spec, Tensor
from fairlap.request.fields.server_address import server_address
from model_servers import HEADER_LENGTH, ModelServer, answering

X = np.arange(8, dtype=np.float32).reshape(2, 4) / 3
PATHS = ("/v2/models/m", "/v1/models/m:predict", "/anything")


def spec(**changes: Any) -> Spec:
    given: dict[str, Any] = {
        "name": "double",
        "task": "doubling",
        "inputs": (Tensor("x", ("batch", 4)),),
        "outputs": (Tensor("y", ("batch", 4)),),
        "weights": (),
        "parameters": 0,
        "gmacs_per_item": None,
        "published": "arithmetic",
    }
    return Spec(**{**given, **changes})


def doubling(**more: Any) -> ModelServer:
    tensors = ("float32", (-1, 4))
    return ModelServer({"x": tensors}, {"y": tensors}, lambda inputs: {"y": 2 * inputs["x"]}, **more)


def client(server: ModelServer, path: str = PATHS[0], timeout_s: float = 10.0, tensors: str = "") -> HttpClient:
    return HttpClient(server_address(server.at(path)), HttpOptions(tensors, timeout_s), spec(), 2)


def answer(found: HttpClient) -> np.ndarray:
    return found.outputs(found.bind({"x": X})())["y"]


def is_doubled(found: HttpClient) -> bool:
    return np.array_equal(answer(found), 2 * X)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("binary", [True, False])
def test_every_protocol_gives_the_model_s_answer_bit_for_bit(path: str, binary: bool) -> None:
    with doubling(binary=binary) as server:
        assert np.array_equal(answer(client(server, path)), 2 * X)
        assert server.connections == 1


def test_raw_bytes_are_sent_where_the_server_offers_them_and_json_where_it_is_asked_for() -> None:
    def sent(**options: Any) -> tuple[dict[str, str], bytes]:
        binary = options.pop("binary", True)
        with doubling(binary=binary) as server:
            answer(client(server, **options))
            [found] = [(headers, body) for path, headers, body in server.requests if path.endswith("/infer")]
            return found

    headers, body = sent()
    length = int(headers[HEADER_LENGTH])
    assert body[length:] == X.tobytes()
    [tensor] = json.loads(body[:length])["inputs"]
    assert tensor == {"name": "x", "shape": [2, 4], "datatype": "FP32", "parameters": {"binary_data_size": X.nbytes}}
    for headers, body in (sent(tensors="json"), sent(binary=False)):
        assert HEADER_LENGTH not in headers
        assert json.loads(body)["inputs"][0]["data"] == X.ravel().tolist()


def test_binary_tensors_are_not_asked_of_a_server_without_them() -> None:
    with doubling(binary=False) as server, pytest.raises(Unsupported):
        client(server, tensors="binary")


@pytest.mark.slow_but("/anything")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "fault",
    [
        *("hangs", "closes", "status 500", "plain status", "redirects", "not JSON", "not HTTP", "truncated", "endless"),
        *("no output", "dies"),
    ],
)
def test_a_server_that_fails_is_named_in_one_line_with_a_code(fault: str, path: str) -> None:
    timeouts_s = (0.5, 4.0, 20.0) if fault == "hangs" else (60.0,)
    with doubling(fault=fault, fault_from=10**9) as server:
        found = answering(lambda timeout_s: client(server, path, timeout_s), is_doubled, *timeouts_s)
        server.fault_from = server.inferences
        with pytest.raises(ServerFailed) as raised:
            answer(found)
    assert raised.value.code == "E_SERVER"
    assert str(raised.value).isprintable()


@pytest.mark.parametrize("fault", ["type", "own shape", "short"])
def test_an_answer_that_contradicts_itself_is_none(fault: str) -> None:
    with doubling(fault=fault) as server, pytest.raises(ServerFailed):
        answer(client(server))


@pytest.mark.parametrize("path", PATHS)
def test_nan_of_a_server_is_nan_here(path: str) -> None:
    with doubling(fault="NaN", binary=False) as server:
        assert np.isnan(answer(client(server, path))).all()


def test_an_address_where_nothing_listens_is_reported() -> None:
    with doubling() as server:
        address = server.v2
    with pytest.raises(ServerFailed):
        HttpClient(server_address(address), HttpOptions(), spec(), 2)


def test_a_kept_connection_that_the_server_closed_between_calls_is_opened_again() -> None:
    with doubling() as server:
        found = client(server)
        answer(found)
        for each in server._http.open:
            each.shutdown(2)
        assert np.array_equal(answer(found), 2 * X)
        assert server.connections == 2


def test_a_request_that_the_server_drops_is_not_sent_again() -> None:
    with doubling(fault="closes", fault_from=1, fault_to=2) as server:
        found = client(server)
        answer(found)
        with pytest.raises(ServerFailed):
            answer(found)
        assert server.inferences == 2
        assert np.array_equal(answer(found), 2 * X)
        assert (server.inferences, server.connections) == (3, 2)


def test_one_that_is_dropped_after_a_pause_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_IDLE_S", 0.0)
    with doubling(fault="closes", fault_from=1, fault_to=2) as server:
        found = client(server)
        answer(found)
        assert np.array_equal(answer(found), 2 * X)
        assert (server.inferences, server.connections) == (3, 2)


def _metadata(**changes: Any) -> dict[str, Any]:
    found = doubling().v2_metadata()
    found["inputs"][0] |= changes
    return found


@pytest.mark.parametrize(
    "metadata",
    [
        _metadata(datatype="INT64"),
        _metadata(datatype="BYTES"),
        _metadata(shape=[3, 4]),
        _metadata(shape=[-1, 4, 1]),
        {**_metadata(), "outputs": [{"name": "a", "datatype": "FP32", "shape": [2, 4]}, *_metadata()["inputs"]]},
        {**_metadata(), "inputs": [*_metadata()["inputs"], {"name": "z", "datatype": "FP32", "shape": [1]}]},
        {**_metadata(), "outputs": [{"name": "y", "datatype": "INT32", "shape": [2, 4]}]},
    ],
)
def test_another_model_is_refused_by_its_metadata_before_anything_is_sent(metadata: dict[str, Any]) -> None:
    with doubling(metadata=metadata) as server:
        with pytest.raises(Unsupported):
            client(server)
        assert server.inferences == 0


def test_a_single_input_and_output_may_have_other_names_on_the_server() -> None:
    tensors = ("float32", (-1, 4))
    forward: Callable[[Any], Any] = lambda inputs: {"out_0": 2 * inputs["in_0"]}  # noqa: E731
    for path in PATHS[:2]:
        with ModelServer({"in_0": tensors}, {"out_0": tensors}, forward) as server:
            assert np.array_equal(answer(client(server, path)), 2 * X)


@pytest.mark.parametrize("metadata", [{"inputs": 7, "outputs": [1]}, {"inputs": [{}], "outputs": [{}]}])
def test_metadata_that_cannot_be_read_is_the_server_s_failure(metadata: dict[str, Any]) -> None:
    with doubling(metadata=metadata) as server, pytest.raises(ServerFailed):
        client(server)


def test_options_are_read_and_wrong_ones_refused() -> None:
    assert http_options_in({"tensors": "json", "timeout": "500ms"}) == HttpOptions("json", 0.5)
    for wrong in ({"tensors": "xml"}, {"timeout": "never"}):
        with pytest.raises(FairlapError):
            http_options_in(wrong)
