"""Models of transformers that answer token by token: opened, checked, and built for a contestant.

The tokens are drawn and handed over, so a model needs no tokenizer. What answers are compared with are the logits of
all tokens at once, in float64 and without a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlap.engine.measurement import Notice
from fairlap.errors import described
from fairlap.models.arrays import Arrays
from fairlap.models.sources.contract import Bundle, Forward, Learner, Opened, Route, SourceError
from fairlap.models.sources.imported import OnnxOnDisk
from fairlap.models.sources.proof import outputs_of
from fairlap.models.sources.python_models.double_modules import DoubleModule, called_in_float32
from fairlap.models.sources.python_models.generating.decoder_exports import (
    ENCODER_FILE,
    exported_decoder,
    exported_encoder_decoder,
)
from fairlap.models.sources.python_models.generating.openvino_folder import OPENVINO_GENAI, openvino_model_in
from fairlap.models.sources.python_models.hugging_face_models import rows_in
from fairlap.models.sources.python_models.torch_exports import ONNX_FILE
from fairlap.models.sources.python_models.torch_models import hold_weights, require_float32
from fairlap.models.sources.python_models.torch_source import float_tensors
from fairlap.models.sources.sizes import fill_of, require_known_ranges, rows
from fairlap.models.spec import Integers, Tensor
from fairlap.request.fields.source import Source
from fairlap.request.work import Precision

if TYPE_CHECKING:
    from fairlap.models.sources.python_models.generating.cached_steps import CachedSteps

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


def opened_generating(source: Source, folder: Path, load: Callable[[], tuple[Any, str]]) -> Opened:
    """Open the module that ``load`` gives, and why its weights were drawn; empty where they were read."""
    _, tokens = _sizes(source)
    model, drawn = load()  # which says what is not installed
    import torch

    from fairlap.models.sources.python_models.generating.trial_answer import trial_answer

    _require_cache(model, source)
    require_float32(model)
    _require_room(model, source)
    try:
        steps = _steps(model, source)
        inputs = _inputs(model, steps, source)
        prompt, continuation = (torch.from_numpy(_any_tokens(each)) for each in inputs)
        _require_causal(steps, source, prompt, continuation)
        trial = trial_answer(steps, prompt, continuation)
    except SourceError:
        raise
    except Exception as error:  # of the model's own code
        raise SourceError(f"{source.shown} cannot answer token by token: {described(error)}") from None
    past, *cross = trial.caches
    if model.config.is_encoder_decoder:
        routes = exported_encoder_decoder(steps, past, cross[0], prompt, folder)
    else:
        routes = exported_decoder(steps, past, trial.vocabulary, folder)
    return Opened(
        inputs=inputs,
        outputs=(_LOGITS, _CHOSEN),
        output_types=dict.fromkeys((_LOGITS, _CHOSEN), "float32"),
        weights={name: each.detach().cpu().contiguous().numpy() for name, each in float_tensors(model).items()},
        forward=_in_double(steps, tokens, source.shown),
        routes={"torch": Route("native"), **routes},
        reference="the PyTorch module in float64, without a cache",
        in_float32=_in_float32(steps, tokens),
        dims=tuple(name for name, _ in source.dims if name == _BATCH),
        multiplications=trial.multiplications,
        notices=(Notice("W_WEIGHTS_DRAWN", drawn),) if drawn else (),
        precisions=_PRECISIONS,
        continuation=CONTINUATION,
        read_weights=trial.read_weights,
    )


def implementation_of_generating(bundle: Bundle, folder: Path, framework: str, load: Callable[[], Any]) -> Any:
    """``load`` gives the module again, in the process of a contestant; its weights are set afterwards."""
    if framework == "torch":
        return _Native(bundle.source, load)
    if framework == OPENVINO_GENAI:
        return OnnxOnDisk(openvino_model_in(folder))
    encoder = folder / ENCODER_FILE
    return OnnxOnDisk(folder / ONNX_FILE, encoder=encoder if encoder.is_file() else None)


def reference_of_generating(source: Source, load: Callable[[], Any]) -> Learner:
    """Answer as when the model was opened, to other tokens; ``load`` gives the module, whose weights are given."""
    _, tokens = _sizes(source)
    forward = _in_double(_steps(load(), source), tokens, source.shown)

    def no_slopes(*_: Any) -> Any:
        raise SourceError(f"{source.shown}: answers token by token have no gradients")

    return Learner((), no_slopes, partial(outputs_of, forward), how="")


class _Native:
    def __init__(self, source: Source, load: Callable[[], Any]) -> None:
        self._source, self._load = source, load

    def build(self, weights: Arrays) -> Any:
        model = self._load()
        hold_weights(model, weights)
        return _steps(model, self._source)


def _sizes(source: Source) -> tuple[int, int]:
    assert source.generate is not None
    return source.generate


def _steps(model: Any, source: Source) -> CachedSteps:
    prompt, tokens = _sizes(source)
    if model.config.is_encoder_decoder:
        from fairlap.models.sources.python_models.generating.encoder_decoder_steps import EncoderDecoderSteps

        return EncoderDecoderSteps(model, prompt, tokens)
    from fairlap.models.sources.python_models.generating.causal_steps import CausalSteps

    return CausalSteps(model, prompt + tokens - 1)


def _require_cache(model: Any, source: Source) -> None:
    from fairlap.models.sources.python_models.generating.cached_steps import cache_argument
    from fairlap.models.sources.python_models.generating.encoder_decoder_steps import start_token, takes_tokens

    right = model.can_generate() and cache_argument(model)
    if not right or (model.config.is_encoder_decoder and not takes_tokens(model)):
        raise SourceError(
            f"{source.shown}: {type(model).__name__} is not a language model with a cache of keys and values; "
            "--generate takes those, such as LlamaForCausalLM and T5ForConditionalGeneration"
        )
    if model.config.is_encoder_decoder and start_token(model) is None:
        raise SourceError(
            f"{source.shown}: its configuration does not name the token that its decoder begins with; set "
            "decoder_start_token_id in it"
        )


def _require_room(model: Any, source: Source) -> None:
    """Refuse more tokens than the context has; an encoder and its decoder have one each."""
    context = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    prompt, tokens = _sizes(source)
    positions = max(prompt, tokens) if model.config.is_encoder_decoder else prompt + tokens - 1
    if isinstance(context, int) and positions > context:
        raise SourceError(
            f"{source.shown} has a context of {context} tokens; a prompt of {prompt} and an answer of {tokens} take "
            f"{positions}, as the last token is not read",
            code="E_SHAPES",
        )


def _inputs(model: Any, steps: CachedSteps, source: Source) -> tuple[Tensor, Tensor]:
    """Describe the tokens of the prompt, and those that are handed over after it: all but the last of the answer."""
    prompt, tokens = _sizes(source)
    batch = source.batch or dict(source.dims).get(_BATCH, 1)
    require_known_ranges([PROMPT, CONTINUATION], source)
    known = rows_in(model.config, PROMPT) or model.get_input_embeddings().weight.shape[0]
    decoded = steps.vocabulary if model.config.is_encoder_decoder else known
    read, handed_over = (
        Tensor(name, (batch, length), fill_of(name, "int64", rows(most), source), "int64")
        for name, length, most in ((PROMPT, prompt, known), (CONTINUATION, tokens - 1, decoded))
    )
    return read, handed_over


def _any_tokens(tensor: Tensor) -> np.ndarray:
    assert isinstance(tensor.fill, Integers)
    found: np.ndarray = np.random.default_rng(0).integers(tensor.fill.low, tensor.fill.high, tensor.sized(1))
    return found


def _require_causal(steps: CachedSteps, source: Source, prompt: Any, continuation: Any) -> None:
    """Refuse a model that reads in both directions, such as BERT without ``is_decoder``."""
    import torch

    changed = continuation.clone()
    changed[:, -1] = (continuation[:, -1] + 1) % steps.vocabulary
    with torch.no_grad():
        before, after = (steps.model(**steps.at_once(prompt, each)).logits[:, :-1] for each in (continuation, changed))
    if float((before - after).abs().max()) > _FUTURE * float(before.abs().max()):
        raise SourceError(
            f"{source.shown}: a later token changes the logits of earlier ones, so {type(steps.model).__name__} cannot "
            "answer token by token; --generate takes causal language models"
        )


def _in_double(steps: CachedSteps, tokens: int, name: str) -> Forward:
    double = DoubleModule(steps.model, name)

    def forward(weights: Arrays, inputs: Arrays) -> Mapping[str, np.ndarray]:
        given = _at_once(steps, inputs)
        return double(weights, lambda model: _every_step(model(**given).logits, tokens))

    return forward


def _in_float32(steps: CachedSteps, tokens: int) -> Forward:
    from torch.func import functional_call

    def forward(weights: Arrays, inputs: Arrays) -> Mapping[str, np.ndarray]:
        given = _at_once(steps, inputs)
        return called_in_float32(
            weights, lambda held: _every_step(functional_call(steps.model, dict(held), (), given).logits, tokens)
        )

    return forward


def _at_once(steps: CachedSteps, inputs: Arrays) -> dict[str, Any]:
    import torch

    return steps.at_once(*(torch.from_numpy(np.array(inputs[name])) for name in (PROMPT, CONTINUATION)))


def _every_step(logits: Any, tokens: int) -> dict[str, Any]:
    """Select the logits of every step, and the largest of each."""
    of_steps = logits[:, -tokens:]
    return {_LOGITS: of_steps, _CHOSEN: of_steps.max(dim=-1).values}
