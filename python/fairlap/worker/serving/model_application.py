"""A contestant as a FastAPI application: its model at the addresses of the open inference protocol, version 2."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import uvicorn
from fastapi import FastAPI, Request, Response, __version__

from fairlap.errors import described
from fairlap.frameworks.adapter_parts.http.open_inference import BINARY_EXTENSION
from fairlap.frameworks.adapter_parts.http.tensor_messages import (
    DATATYPES,
    JSON_LENGTH,
    BadTensors,
    message_of,
    tensors_in,
)
from fairlap.frameworks.contract import Contestant
from fairlap.models.arrays import Arrays
from fairlap.models.spec import Spec, Tensor
from fairlap.scenarios.calls.input_slots import InputSlots
from fairlap.worker.serving.over_http import SERVED_AT

_NAMES = {dtype: name for name, dtype in DATATYPES.items()}


class ServedContestant:
    """Answers one request after the other, as one process with one model does."""

    def __init__(self, contestant: Contestant, spec: Spec, batch: int) -> None:
        self._contestant, self._spec = contestant, spec
        self._slots = InputSlots(contestant, spec.inputs, batch)
        self.metadata = {
            "name": spec.name,
            "platform": "fairlap",
            "inputs": [_described(tensor, batch, tensor.dtype) for tensor in spec.inputs],
            "outputs": [_described(tensor, batch, "float32") for tensor in spec.outputs],
        }

    def answer(self, inputs: Arrays) -> Arrays:
        for name, slot in self._slots.arrays.items():
            if name not in inputs:
                raise BadTensors(f"it lacks the input {name}")
            _fill(slot, name, inputs[name])
        result = self._slots.result()
        if self._contestant.done is not None:
            self._contestant.done(result)
        outputs = self._contestant.outputs(result)
        return {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in outputs.items()}


def application(served: ServedContestant) -> FastAPI:
    app = FastAPI(openapi_url=None)
    about = {
        "name": f"FastAPI {__version__}",
        "version": f"on uvicorn {uvicorn.__version__} ({_parser()})",
        "extensions": [BINARY_EXTENSION],
    }

    async def infer(request: Request) -> Response:
        try:
            inputs, _ = tensors_in("inputs", await request.body(), request.headers)
            # As it was asked: in raw bytes or in JSON.
            body, headers = message_of("outputs", served.answer(inputs), {}, binary=JSON_LENGTH in request.headers)
        except BadTensors as error:
            return _refusal(400, str(error))
        except Exception as error:
            return _refusal(500, described(error))
        return Response(body, headers=headers)

    app.add_api_route("/v2", lambda: about, methods=["GET"])
    app.add_api_route("/v2/health/ready", lambda: {"ready": True}, methods=["GET"])
    app.add_api_route(SERVED_AT, lambda: served.metadata, methods=["GET"])
    app.add_api_route(f"{SERVED_AT}/infer", infer, methods=["POST"], response_model=None)
    return app


def _fill(slot: np.ndarray, name: str, array: np.ndarray) -> None:
    if (array.dtype, array.shape) != (slot.dtype, slot.shape):
        raise BadTensors(f"{name} is {array.dtype} {list(array.shape)}, not {slot.dtype} {slot.shape}")
    slot[...] = array


def _described(tensor: Tensor, batch: int, dtype: str) -> dict[str, Any]:
    return {"name": tensor.name, "datatype": _NAMES[dtype], "shape": tensor.sized(batch)}


def _refusal(status: int, text: str) -> Response:
    return Response(msgspec.json.encode({"error": text}), status, media_type="application/json")


def _parser() -> str:
    """Which implementations uvicorn takes: those in C where they are installed."""
    from importlib.util import find_spec

    loop = "uvloop" if find_spec("uvloop") else "asyncio"
    return f"{'httptools' if find_spec('httptools') else 'h11'}, {loop}"
