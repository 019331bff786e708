"""The ONNX graph of a step: any number of tokens after any number that the cache knows, exported by PyTorch.

ONNX Runtime and OpenVINO run the same file.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from fairlap.errors import cause_of
from fairlap.models.sources.contract import Route
from fairlap.models.sources.python_models.causal_steps import CausalSteps, StepOfArrays
from fairlap.models.sources.python_models.torch_exports import (
    EXPORTED,
    ONNX_FILE,
    converted_route,
    named_route,
    write_onnx,
)

PAST = "past_"
_TOKENS, _KNOWN = 3, 5  # of the example: others than 0 and 1, which an export takes for fixed
_OTHERS = "only PyTorch, ONNX Runtime and OpenVINO run a model of yours token by token here"


def exported_decoder(steps: CausalSteps, cache: Sequence[tuple[int, ...]], folder: Path) -> dict[str, Route]:
    """Export a step; ``cache`` has the shapes of the keys and the values of every layer in turn."""
    route = _exported(steps, cache, folder)
    others = dict.fromkeys(("jax", "tensorflow", "executorch"), Route(why_not=_OTHERS))
    return {**dict.fromkeys(("onnx", "openvino"), route), **others}


def _exported(steps: CausalSteps, cache: Sequence[tuple[int, ...]], folder: Path) -> Route:
    if not cache:
        return Route(why_not="its cache holds more than keys and values that grow, which is not exported here")
    import torch

    began_s = time.monotonic()
    past = [torch.zeros((batch, heads, _KNOWN, head)) for batch, heads, _, head in cache]
    tokens, known = torch.export.Dim("tokens", min=2), torch.export.Dim("known", min=2)
    try:
        program = torch.export.export(
            StepOfArrays(steps).eval(),
            (),
            {"input_ids": torch.zeros((cache[0][0], _TOKENS), dtype=torch.int64), "past": past},
            dynamic_shapes={"input_ids": {1: tokens}, "past": [{2: known} for _ in past]},
            strict=False,
        )
    except Exception as error:  # of torch.export and of the model itself
        return Route(why_not=f"PyTorch cannot export it with its cache: {cause_of(error)}")
    names = [f"{part}_{layer}" for layer in range(len(past) // 2) for part in ("keys", "values")]
    inputs, outputs = ["input_ids", *(f"{PAST}{name}" for name in names)], ["logits", *names]
    return named_route(
        converted_route(lambda: write_onnx(program, inputs, outputs, folder / ONNX_FILE), time.monotonic() - began_s),
        EXPORTED,
    )
