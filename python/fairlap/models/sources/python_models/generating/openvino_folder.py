"""The folder that OpenVINO GenAI reads: a step whose caches are states, in the form that it finds attention in.

PyTorch exports the step with any number of prompts, and OpenVINO converts it. GenAI then replaces the attention, its
mask and its states by attention over a cache in blocks. It finds them where a state begins empty, with a row for each
prompt, and is ordered by an input ``beam_idx`` when it is read, as in the folders that optimum-intel writes.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlap.models.sources.contract import Route
from fairlap.models.sources.python_models.torch_exports import converted_route, named_route

if TYPE_CHECKING:
    from fairlap.models.sources.python_models.generating.causal_steps import CausalSteps
    from fairlap.models.sources.python_models.generating.trial_answer import Shapes

OPENVINO_GENAI = "openvino-genai"
_MODEL = "openvino_model.xml"
_HOW = "exported by PyTorch, with states by OpenVINO"
_PAST = "past_"
_PROMPTS, _TOKENS, _KNOWN = 2, 3, 5  # of the example, for sizes that stay open


def openvino_model_in(folder: Path) -> Path:
    return folder / OPENVINO_GENAI / _MODEL


def exported_openvino_folder(steps: CausalSteps, past: Shapes, folder: Path) -> Route:
    """Write it only where the package is installed, since few contestants need it; ``past`` is as in the ONNX file."""
    if find_spec("openvino_genai") is None:
        return Route(why_not=f"it is converted where fairlap runs; install {OPENVINO_GENAI} there")
    return named_route(converted_route(lambda: _write(steps, past, openvino_model_in(folder)), 0.0), _HOW)


def _write(steps: CausalSteps, past: Shapes, file: Path) -> int:
    import openvino

    model = openvino.convert_model(_program(steps, past))
    names = [f"{part}_{layer}" for layer in range(len(past) // 2) for part in ("keys", "values")]
    for ports, named in (
        (model.inputs, ["input_ids", "position_ids", *(_PAST + name for name in names)]),
        (model.outputs, ["logits", *names]),
    ):
        for port, name in zip(ports, named, strict=True):
            port.get_tensor().set_names({name})
    sizes = {_PAST + name: [-1, heads, -1, head] for name, (_, heads, _, head) in zip(names, past, strict=True)}
    model.reshape({"input_ids": [-1, -1], "position_ids": [-1, -1], **sizes})
    _make_states(model, names)
    file.parent.mkdir()
    openvino.save_model(model, file, compress_to_fp16=False)
    return sum(each.stat().st_size for each in file.parent.iterdir())


def _program(steps: CausalSteps, past: Shapes) -> Any:
    import torch

    from fairlap.models.sources.python_models.generating.causal_steps import StepAtPlaces

    prompts, tokens, known = (torch.export.Dim(name, min=2) for name in ("prompts", "tokens", "known"))
    places = torch.arange(_KNOWN, _KNOWN + _TOKENS)
    given = {
        "input_ids": torch.zeros((_PROMPTS, _TOKENS), dtype=torch.int64),
        "position_ids": places.repeat(_PROMPTS, 1),
        "past": [torch.zeros((_PROMPTS, heads, _KNOWN, head)) for _, heads, _, head in past],
    }
    of_tokens = {0: prompts, 1: tokens}
    sizes = {"input_ids": of_tokens, "position_ids": of_tokens, "past": [{0: prompts, 2: known} for _ in past]}
    return torch.export.export(StepAtPlaces(steps).eval(), (), given, dynamic_shapes=sizes, strict=False)


def _make_states(model: Any, names: list[str]) -> None:
    from openvino import opset13 as ops
    from openvino.passes import MakeStateful, Manager

    manager = Manager()
    manager.register_pass(MakeStateful({_PAST + name: name for name in names}))
    manager.run_passes(model)
    tokens = model.input("input_ids").get_node()
    prompts = ops.gather(ops.shape_of(tokens, output_type="i64"), ops.constant([0]), ops.constant(0))
    order = ops.parameter([-1], np.int32, name="beam_idx")
    mask = ops.parameter([-1, -1], np.int64, name="attention_mask")
    for parameter in (order, mask):
        parameter.output(0).get_tensor().set_names({parameter.get_friendly_name()})
    model.add_parameters([order, mask])
    for state in [each for each in model.get_ops() if each.get_type_name() == "ReadValue"]:
        _, heads, _, head = state.get_output_partial_shape(0)
        sizes = [prompts, *(ops.constant([size]) for size in (heads.get_length(), 0, head.get_length()))]
        state.set_arguments([ops.broadcast(ops.constant(np.float32(0)), ops.concat(sizes, axis=0)).output(0)])
        readers = state.output(0).get_target_inputs()
        ordered = ops.gather(state, order, ops.constant(0))
        for reader in readers:
            reader.replace_source_output(ordered.output(0))
    model.validate_nodes_and_infer_types()
