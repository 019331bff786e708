"""Causal language models of transformers that answer token by token: opened, checked, and built for a contestant.

The tokens are drawn and handed over, so a model needs no tokenizer. What answers are compared with are the logits of
all tokens at once, in float64 and without a cache.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.engine.measurement import Notice
from fairlap.errors import described
from fairlap.models.arrays import Arrays
from fairlap.models.sources.contract import Bundle, Forward, Opened, Route, SourceError
from fairlap.models.sources.imported import OnnxOnDisk
from fairlap.models.sources.python_models.hugging_face_models import LocalModel, module_of, rows_in
from fairlap.models.sources.python_models.torch_exports import ONNX_FILE
from fairlap.models.sources.python_models.torch_models import computing_in_double, hold_weights, require_float32
from fairlap.models.sources.python_models.torch_source import float_tensors
from fairlap.models.sources.sizes import fill_of, require_known_ranges, rows
from fairlap.models.spec import Integers, Tensor
from fairlap.request.fields.source import Source
from fairlap.request.work import Precision

PROMPT, CONTINUATION = "input_ids", "continuation"
_LOGITS, _CHOSEN = "logits", "chosen_logits"
_PRECISIONS: tuple[Precision, ...] = ("fp32", "tf32", "fp16", "bf16", "autocast")
_BATCH = "batch"
_FUTURE = 1e-5  # of the largest logit: what a later token may change in earlier ones, by rounding


def require_nothing_else(source: Source) -> None:
    """Refuse what decides the inputs too, and what scores answers to them."""
    given = {"shapes": source.shapes, "inputs": source.inputs, "metric": source.metrics}
    given["dims"] = [name for name, _ in source.dims if name != _BATCH and not source.among_others]
    if refused := [name for name, value in given.items() if value]:
        raise SourceError(
            f"{source.shown}: --generate draws the tokens, and nothing is scored; leave out --{refused[0]}",
            code="E_SHAPES",
        )


def opened_generating(source: Source, folder: Path) -> Opened:
    prompt, tokens = _sizes(source)
    local = LocalModel(source)
    model, drawn = module_of(local, with_weights=True)  # which says what is not installed
    import torch

    from fairlap.models.sources.python_models.causal_steps import CausalSteps, cache_argument
    from fairlap.models.sources.python_models.decoder_exports import exported_decoder
    from fairlap.models.sources.python_models.trial_answer import trial_answer

    if not model.can_generate() or model.config.is_encoder_decoder or not cache_argument(model):
        raise SourceError(
            f"{source.shown}: {type(model).__name__} is not a causal language model with a cache of keys and values; "
            "--generate takes those, such as LlamaForCausalLM"
        )
    require_float32(model)
    _require_room(model, source, prompt + tokens - 1)
    inputs = _inputs(model, source)
    ids = {each.name: torch.from_numpy(_any_tokens(each)) for each in inputs}
    try:
        _require_causal(model, source, torch.cat(list(ids.values()), dim=1))
        steps = CausalSteps(model, prompt + tokens - 1)
        trial = trial_answer(steps, ids[PROMPT], ids[CONTINUATION])
    except SourceError:
        raise
    except Exception as error:  # of the model's own code
        raise SourceError(f"{source.shown} cannot answer token by token: {described(error)}") from None
    return Opened(
        inputs=inputs,
        outputs=(_LOGITS, _CHOSEN),
        output_types=dict.fromkeys((_LOGITS, _CHOSEN), "float32"),
        weights={name: each.detach().cpu().contiguous().numpy() for name, each in float_tensors(model).items()},
        forward=_in_double(model, tokens),
        routes={"torch": Route("native"), **exported_decoder(steps, trial.cache, folder)},
        reference="the PyTorch module in float64, without a cache",
        in_float32=_in_float32(model, tokens),
        dims=tuple(name for name, _ in source.dims if name == _BATCH),
        multiplications=trial.multiplications,
        notices=(Notice("W_WEIGHTS_DRAWN", drawn),) if drawn else (),
        precisions=_PRECISIONS,
        continuation=CONTINUATION,
        read_weights=tokens * trial.read_weights,
    )


def implementation_of_generating(bundle: Bundle, folder: Path, framework: str) -> Any:
    return _Native(bundle.source) if framework == "torch" else OnnxOnDisk(folder / ONNX_FILE)


class _Native:
    def __init__(self, source: Source) -> None:
        self._source = source

    def build(self, weights: Arrays) -> Any:
        from fairlap.models.sources.python_models.causal_steps import CausalSteps

        model, _ = module_of(LocalModel(self._source), with_weights=False)
        hold_weights(model, weights)
        return CausalSteps(model, sum(_sizes(self._source)) - 1)


def _sizes(source: Source) -> tuple[int, int]:
    assert source.generate is not None
    return source.generate


def _require_room(model: Any, source: Source, positions: int) -> None:
    context = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if isinstance(context, int) and positions > context:
        prompt, tokens = _sizes(source)
        raise SourceError(
            f"{source.shown} has a context of {context} tokens; a prompt of {prompt} and an answer of {tokens} take "
            f"{positions}, as the last token is not read",
            code="E_SHAPES",
        )


def _inputs(model: Any, source: Source) -> tuple[Tensor, Tensor]:
    """Describe the tokens of the prompt, and those that are handed over after it: all but the last of the answer."""
    prompt, tokens = _sizes(source)
    batch = source.batch or dict(source.dims).get(_BATCH, 1)
    require_known_ranges([PROMPT, CONTINUATION], source)
    known = rows(rows_in(model.config, PROMPT) or model.get_input_embeddings().weight.shape[0])
    sizes = {PROMPT: (batch, prompt), CONTINUATION: (batch, tokens - 1)}
    read, handed_over = (
        Tensor(name, shape, fill_of(name, "int64", known, source), "int64") for name, shape in sizes.items()
    )
    return read, handed_over


def _any_tokens(tensor: Tensor) -> np.ndarray:
    assert isinstance(tensor.fill, Integers)
    found: np.ndarray = np.random.default_rng(0).integers(tensor.fill.low, tensor.fill.high, tensor.sized(1))
    return found


def _require_causal(model: Any, source: Source, ids: Any) -> None:
    """Refuse a model that reads in both directions, such as BERT without ``is_decoder``."""
    import torch

    changed = ids.clone()
    changed[:, -1] = (ids[:, -1] + 1) % model.get_input_embeddings().weight.shape[0]
    with torch.no_grad():
        before, after = (model(input_ids=each, use_cache=False).logits[:, :-1] for each in (ids, changed))
    if float((before - after).abs().max()) > _FUTURE * float(before.abs().max()):
        raise SourceError(
            f"{source.shown}: a later token changes the logits of earlier ones, so {type(model).__name__} cannot "
            "answer token by token; --generate takes causal language models"
        )


def _in_double(model: Any, tokens: int) -> Forward:
    double = copy.deepcopy(model).double()

    def forward(weights: Arrays, inputs: Arrays) -> dict[str, np.ndarray]:
        with computing_in_double():
            return _every_step(double, weights, inputs, tokens)

    return forward


def _in_float32(model: Any, tokens: int) -> Forward:
    import torch

    def forward(weights: Arrays, inputs: Arrays) -> dict[str, np.ndarray]:
        with torch.no_grad():
            return _every_step(model, weights, inputs, tokens)

    return forward


def _every_step(model: Any, weights: Arrays, inputs: Arrays, tokens: int) -> dict[str, np.ndarray]:
    """Compute the logits of every step at once, and the largest of each."""
    import torch
    from torch.func import functional_call

    held: Mapping[str, Any] = {name: torch.from_numpy(np.array(weights[name])) for name in weights}
    ids = torch.from_numpy(np.concatenate([inputs[PROMPT], inputs[CONTINUATION]], axis=1))
    logits = functional_call(model, held, (), {PROMPT: ids, "use_cache": False}).logits[:, -tokens:]
    return {_LOGITS: logits.numpy(), _CHOSEN: logits.max(dim=-1).values.numpy()}
