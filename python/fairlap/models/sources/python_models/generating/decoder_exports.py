"""The ONNX graph of a step: any number of tokens after any number that the cache knows, exported by PyTorch.

An encoder-decoder has a second graph, of its encoder, which also gives the keys and the values of the prompt. ONNX
Runtime and OpenVINO run the same files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlap.errors import cause_of
from fairlap.models.sources.contract import Route
from fairlap.models.sources.python_models.generating.genai_config import write_genai_config
from fairlap.models.sources.python_models.generating.openvino_folder import OPENVINO_GENAI, exported_openvino_folder
from fairlap.models.sources.python_models.torch_exports import (
    EXPORTED,
    ONNX_FILE,
    converted_route,
    named_route,
    write_onnx,
)

if TYPE_CHECKING:
    from fairlap.models.sources.python_models.generating.causal_steps import CausalSteps
    from fairlap.models.sources.python_models.generating.encoder_decoder_steps import EncoderDecoderSteps
    from fairlap.models.sources.python_models.generating.trial_answer import Shapes

ENCODER_FILE = "exported-encoder.onnx"
PAST, CROSS = "past_", "cross_"
_START = "start"
_TOKENS, _KNOWN = 3, 5  # of the example: others than 0 and 1, which an export takes for fixed
_OTHERS = "only PyTorch, ONNX Runtime, OpenVINO and their GenAI run a model of yours token by token here"
_COMPILED = f"the exported step's cache grows with each token, and JAX compiles a graph for each size; {_OTHERS}"
_GENAI = "onnxruntime-genai"
_ONE_PROMPT = f"{_GENAI} takes tokens one by one for one prompt only; leave out --batch"
_NO_ENCODER = "{} runs no encoder beside a decoder here"
_OTHER_CACHE = "its cache holds more than keys and values that grow, which is not exported here"


def exported_decoder(steps: CausalSteps, past: Shapes, vocabulary: int, folder: Path) -> dict[str, Route]:
    """Export a step; ``past`` has the shapes of the keys and the values of every layer in turn."""
    from fairlap.models.sources.python_models.generating.causal_steps import StepOfArrays

    def write() -> int:
        import torch

        tokens = torch.export.Dim("tokens", min=2)
        ids = torch.zeros((past[0][0], _TOKENS), dtype=torch.int64)
        given = {"input_ids": (ids, {1: tokens}), **_growing(past)}
        names = _names(past)
        inputs = ["input_ids", *(PAST + name for name in names)]
        size = _write(StepOfArrays(steps), given, inputs, ["logits", *names], folder / ONNX_FILE)
        write_genai_config(folder / ONNX_FILE, past, vocabulary, steps.positions)
        return size

    genai = {_GENAI: Route(why_not=_ONE_PROMPT)} if past and past[0][0] > 1 else {}
    openvino = exported_openvino_folder(steps, past, folder) if past else Route(why_not=_OTHER_CACHE)
    return {**_routes(write, known=bool(past)), **genai, OPENVINO_GENAI: openvino}


def exported_encoder_decoder(
    steps: EncoderDecoderSteps, past: Shapes, cross: Shapes, prompt: Any, folder: Path
) -> dict[str, Route]:
    """Export the encoder, and a step of the decoder, which reads one token; ``cross`` are the shapes of the prompt."""
    from fairlap.models.sources.python_models.generating.encoder_decoder_steps import (
        DecoderStepOfArrays,
        EncoderOfArrays,
    )

    def write() -> int:
        import torch

        names = _names(past)
        of_prompt = [CROSS + name for name in names]
        given = {
            "input_ids": (torch.zeros((past[0][0], 1), dtype=torch.int64), {}),
            **_growing(past),
            "cross": ([torch.zeros(shape) for shape in cross], [{} for _ in cross]),
        }
        inputs = ["input_ids", *(PAST + name for name in names), *of_prompt]
        with steps.in_plain_operators():
            of_encoder: dict[str, tuple[Any, Any]] = {"input_ids": (prompt, {})}
            size = _write(
                EncoderOfArrays(steps), of_encoder, ["input_ids"], [_START, *of_prompt], folder / ENCODER_FILE
            )
            return size + _write(DecoderStepOfArrays(steps), given, inputs, ["logits", *names], folder / ONNX_FILE)

    without = {name: Route(why_not=_NO_ENCODER.format(name)) for name in (_GENAI, OPENVINO_GENAI)}
    return {**_routes(write, known=bool(past) and bool(cross)), **without}


def _growing(past: Shapes) -> dict[str, tuple[Any, Any]]:
    import torch

    known = torch.export.Dim("known", min=2)
    arrays = [torch.zeros((batch, heads, _KNOWN, head)) for batch, heads, _, head in past]
    return {"past": (arrays, [{2: known} for _ in past])}


def _names(past: Shapes) -> list[str]:
    return [f"{part}_{layer}" for layer in range(len(past) // 2) for part in ("keys", "values")]


def _write(module: Any, given: Mapping[str, tuple[Any, Any]], inputs: list[str], outputs: list[str], file: Path) -> int:
    """Export the module on examples, each with the sizes that it leaves open."""
    import torch

    examples = {name: example for name, (example, _) in given.items()}
    sizes = {name: open_sizes for name, (_, open_sizes) in given.items()}
    try:
        program = torch.export.export(module.eval(), (), examples, dynamic_shapes=sizes, strict=False)
    except Exception as error:  # of torch.export and of the model itself
        raise _NotExported(f"PyTorch cannot export it with its cache: {cause_of(error)}") from None
    return write_onnx(program, inputs, outputs, file)


class _NotExported(Exception):
    pass


def _routes(write: Callable[[], int], *, known: bool) -> dict[str, Route]:
    route = named_route(converted_route(write, 0.0), EXPORTED) if known else Route(why_not=_OTHER_CACHE)
    others = {"jax": Route(why_not=_COMPILED), **dict.fromkeys(("tensorflow", "executorch"), Route(why_not=_OTHERS))}
    return {**dict.fromkeys(("onnx", "openvino"), route), **others}
