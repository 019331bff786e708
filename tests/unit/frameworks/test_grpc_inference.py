"""A server by gRPC is a contestant like one by HTTP: its answers bit for bit, and its faults in one line."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from fairlap.frameworks.adapter_parts.grpc.messages import messages, parsed
from fairlap.frameworks.adapter_parts.http.client import HttpClient
from fairlap.frameworks.adapter_parts.http.http_options import HttpOptions
from fairlap.frameworks.contract import Unsupported
from fairlap.frameworks.contract_parts.called_programs import ServerFailed
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.models.spec import Spec, Tensor
from fairlap.request.fields.server_address import server_address
from fairlap.scenarios.streams.protocols.contract import Piece
from fairlap.scenarios.streams.protocols.kserve_grpc import KServeByGrpc
from grpc_model_server import GrpcModelServer
from hypothesis import given
from hypothesis import strategies as st
from machine_marks import needs
from model_servers import ModelServer, answering
from protobuf_by_hand import all_of, message, text_of, varint, varints_in

needs("grpc", reason="needs the extra grpc; `make test` installs it and runs this")

X = np.arange(8, dtype=np.float32).reshape(2, 4) / 3


def doubling(**more: Any) -> GrpcModelServer:
    tensors = ("float32", (-1, 4))
    return GrpcModelServer(ModelServer({"x": tensors}, {"y": tensors}, lambda inputs: {"y": 2 * inputs["x"]}), **more)


def client(server: GrpcModelServer, model: str = "m", *, of_input: str = "x", **options: Any) -> HttpClient:
    spec = Spec(
        name="double",
        task="doubling",
        inputs=(Tensor(of_input, ("batch", 4)), *((Tensor("z", ("batch",)),) if of_input != "x" else ())),
        outputs=(Tensor("y", ("batch", 4)),),
        weights=(),
        parameters=0,
        gmacs_per_item=None,
        published="arithmetic",
    )
    address = server_address(f"grpc://127.0.0.1:{server.port}", schemes=("grpc",))
    return HttpClient(address, HttpOptions(**{"timeout_s": 10.0, "model": model, **options}), spec, 2)


def answer(found: HttpClient) -> np.ndarray:
    return found.outputs(found.bind({"x": X})())["y"]


def is_doubled(found: HttpClient) -> bool:
    return np.array_equal(answer(found), 2 * X)


@pytest.mark.parametrize("typed", [False, True])
def test_a_model_s_answer_comes_bit_for_bit(typed: bool) -> None:
    with doubling(typed=typed) as server:
        found = client(server, "m/versions/2")
        assert np.array_equal(answer(found), 2 * X)
        [request] = server.requests
    assert found.protocol.server == "test server 3"
    assert (text_of(request, 1), text_of(request, 2)) == ("m", "2")
    assert all_of(request, 7) == [X.tobytes()]
    assert [text_of(each, 1) for each in all_of(request, 6)] == ["y"]


@pytest.mark.parametrize("fault", ["hangs", "status", "dies", "rubbish", "short", "type", "no output"])
def test_a_server_that_fails_is_named_in_one_line_with_a_code(fault: str) -> None:
    timeouts_s = (0.5, 4.0, 20.0) if fault == "hangs" else (60.0,)
    with doubling(fault=fault, fault_from=10**9) as server:
        found = answering(lambda timeout_s: client(server, timeout_s=timeout_s), is_doubled, *timeouts_s)
        server.fault_from = len(server.requests)
        with pytest.raises(ServerFailed) as raised:
            answer(found)
    assert raised.value.code == "E_SERVER"
    assert str(raised.value).isprintable()


def test_an_address_where_nothing_listens_is_reported() -> None:
    with doubling() as server:
        pass
    with pytest.raises(ServerFailed):
        client(server, timeout_s=10.0)


@pytest.mark.parametrize("how", [{"model": ""}, {"tensors": "json"}, {"of_input": "w"}])
def test_what_the_server_does_not_have_is_unsupported(how: dict[str, Any]) -> None:
    with doubling() as server, pytest.raises(Unsupported):
        client(server, **how)


@given(st.text(max_size=20), st.lists(st.integers(0, 2**40), max_size=4), st.binary(max_size=200), st.booleans())
def test_messages_are_those_that_are_written_by_hand(name: str, shape: list[int], raw: bytes, flag: bool) -> None:
    request = messages().Request(model_name=name, raw_input_contents=[raw])
    request.inputs.add(name=name, datatype="BYTES", shape=shape).contents.bytes_contents.append(raw)
    request.parameters["p"].bool_param = flag
    data = request.SerializeToString()
    [tensor] = all_of(data, 5)
    [entry] = all_of(data, 4)
    assert (text_of(data, 1), all_of(data, 7)) == (name, [raw])
    assert varints_in(all_of(tensor, 3)) == shape
    assert [all_of(each, 8) for each in all_of(tensor, 5)] == [[raw]]
    assert all_of(entry, 2) == [message((1, int(flag)))]
    packed = b"".join(map(varint, shape))
    by_hand = message((5, message((1, name), (2, "FP32"), *([(3, packed)] if shape else []))), (6, raw))
    found = parsed(messages().Answer, by_hand)
    assert (found.outputs[0].name, list(found.outputs[0].shape), found.raw_output_contents[0]) == (name, shape, raw)


@given(st.binary(max_size=300))
def test_bytes_that_are_no_answer_are_never_more_than_an_error(data: bytes) -> None:
    with contextlib.suppress(*NOT_THE_DOCUMENT):
        assert isinstance(KServeByGrpc().piece(data), Piece)
