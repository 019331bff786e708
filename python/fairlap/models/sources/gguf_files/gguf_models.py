"""GGUF files as modules of transformers: what the header says, and the weights as the package gguf expands them.

llama.cpp computes with all that a header and its tensors say, so a file with something that is not understood here is
refused: left out, it would be another model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from fairlap.errors import described
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.gguf_files.gguf_header import require_lengths
from fairlap.models.sources.onnx_graphs.binding import require_memory
from fairlap.models.sources.python_models.torch_models import hold_weights
from fairlap.request.work import Precision

MAGIC = b"GGUF"
PLAIN = "F32"
_FLOAT_BYTES = 4
_CLASSES = {"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3"}  # by the header's architecture
_TEXT = "tokenizer."  # keys of what makes tokens of a text, which are many
_ROPE_FACTORS = "rope_freqs.weight"

_SIZES = {
    "num_hidden_layers": "block_count",
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count",
    "max_position_embeddings": "context_length",
}
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {  # what may be said without changing the model
    "expert_count": (0,),
    "expert_used_count": (0,),
    "attention.causal": (True,),
    "rope.scaling.type": ("none",),
    "rope.scaling.factor": (0.0, 1.0),
}
_TENSOR = re.compile(r"(?:blk\.(?P<layer>\d+)\.)?(?P<what>\w+)\.(?P<part>weight|bias)")
_WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_OF_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}

Weights = dict[str, npt.NDArray[np.float32]]


class GgufModel(msgspec.Struct, frozen=True):
    """What a module is made of, but for its weights. Contestants make theirs of it, without reading the file."""

    architecture: str
    config: dict[str, Any]
    types: dict[str, str]  # of each weight in the file, by its name in the module, such as Q4_0
    rope_factors: tuple[float, ...] = ()  # by which the frequencies of positions are divided


@dataclass(frozen=True)
class GgufOnDisk:
    """For llama.cpp, which reads the file itself."""

    file: Path
    types: tuple[str, ...]  # of few bits, in which the file holds weights


def read_gguf(path: Path, name: str) -> tuple[GgufModel, Weights]:
    """Return the model and its weights, by the module's names; ``name`` is the file's in messages."""
    try:
        import gguf
    except ModuleNotFoundError as error:
        raise SourceError(f"{name} is read with the package {error.name}; install it") from None
    try:
        require_lengths(path)
        reader = gguf.GGUFReader(path)
        fields = {key: each.contents() for key, each in reader.fields.items() if not key.startswith(_TEXT)}
        tensors = {each.name: each for each in reader.tensors}
        elements = sum(int(each.n_elements) for each in reader.tensors)
    except Exception as error:  # of a file that ends early or contradicts itself; the package has no error of its own
        raise SourceError(f"{name} is damaged, or not a GGUF file: {described(error)}") from None
    require_memory(_FLOAT_BYTES * elements, name)
    header = _Header(fields, name)
    factors = tensors.pop(_ROPE_FACTORS, None)
    try:
        weights = {}
        for key, each in tensors.items():
            array = np.ascontiguousarray(gguf.dequantize(each.data, each.tensor_type), np.float32)
            weights[_name_in_module(key, name)] = header.in_order_of_module(key, array)
        divided = () if factors is None else tuple(map(float, gguf.dequantize(factors.data, factors.tensor_type)))
    except SourceError:
        raise
    except Exception as error:  # of a type that the package does not expand, or of data that are not there
        raise SourceError(f"{name}: its weights cannot be expanded to float32: {described(error)}") from None
    config = header.config(weights)
    types = {_name_in_module(key, name): each.tensor_type.name for key, each in tensors.items()}
    return GgufModel(header.architecture, config, types, divided), weights


def module_of_gguf(model: GgufModel) -> Any:
    """Make the module, in eval mode and float32; its weights are still to be set."""
    import torch
    import transformers

    made = _CLASSES[model.architecture]
    config = getattr(transformers, f"{made}Config")(**model.config)
    found = getattr(transformers, f"{made}ForCausalLM")._from_config(config, dtype=torch.float32)
    if model.rope_factors:
        for buffer in (found.model.rotary_emb.inv_freq, found.model.rotary_emb.original_inv_freq):
            buffer.div_(torch.tensor(model.rope_factors))
    return found.eval()


def module_with(model: GgufModel, weights: Weights, name: str) -> Any:
    """Make the module with these weights, and refuse a file that has more or fewer than it takes."""
    try:
        found = module_of_gguf(model)
    except Exception as error:  # of a configuration that transformers refuses, or factors of another size
        raise SourceError(f"{name}: transformers cannot make its model: {described(error)}") from None
    wanted = found.state_dict()
    tied = {"lm_head.weight"} if model.config["tie_word_embeddings"] else set()
    wrong = [
        *(f"it lacks {each}" for each in sorted(set(wanted) - set(weights) - tied)),
        *(f"{each} is not a weight of {type(found).__name__}" for each in sorted(set(weights) - set(wanted))),
        *(
            f"{each} is {list(array.shape)}, not {list(wanted[each].shape)}"
            for each, array in weights.items()
            if each in wanted and array.shape != tuple(wanted[each].shape)
        ),
    ]
    if wrong:
        raise SourceError(f"{name} is not a whole model of {model.architecture}: {wrong[0]}")
    hold_weights(found, weights)
    return found


def _name_in_module(key: str, name: str) -> str:
    match = _TENSOR.fullmatch(key)
    layer = match["layer"] if match else None
    place = None if match is None else (_WHOLE if layer is None else _OF_LAYER).get(match["what"])
    if match is None or place is None:
        raise SourceError(f"{name} has a tensor {key!r}, which is not read here")
    return f"{place}.{match['part']}" if layer is None else f"model.layers.{int(layer)}.{place}.{match['part']}"


class _Header:
    def __init__(self, fields: Mapping[str, Any], name: str) -> None:
        self._name = name
        self.architecture = str(fields.get("general.architecture", ""))
        if self.architecture not in _CLASSES:
            raise SourceError(
                f"{name} has the architecture {self.architecture!r}; GGUF files of {', '.join(_CLASSES)} are read"
            )
        kind, parts = fields.get("general.type", "model"), fields.get("split.count", 0)
        if kind != "model" or parts not in (0, 1):
            raise SourceError(f"{name} is a part of a model, or what is added to one; give one file with all of it")
        before = f"{self.architecture}."
        self._own = {key.removeprefix(before): value for key, value in fields.items() if key.startswith(before)}

    def config(self, weights: Weights) -> dict[str, Any]:
        """Return what transformers' configuration is made with, and refuse what it does not take."""
        rows, _ = weights.get("model.embed_tokens.weight", np.empty((0, 0))).shape
        found: dict[str, Any] = {name: self._whole(key) for name, key in _SIZES.items()}
        heads = found["num_attention_heads"]
        head = self._whole("attention.key_length", found["hidden_size"] // max(heads, 1))
        found |= {
            "vocab_size": rows,
            "num_key_value_heads": self._whole("attention.head_count_kv", heads),
            "head_dim": head,
            "rms_norm_eps": self._number("attention.layer_norm_rms_epsilon"),
            "rope_parameters": {"rope_type": "default", "rope_theta": self._number("rope.freq_base", 10_000.0)},
            "tie_word_embeddings": "lm_head.weight" not in weights,
            "use_cache": False,  # a cache is for calls that follow, which bring theirs
        }
        said = {"vocab_size": rows, "attention.value_length": head, "rope.dimension_count": head}
        read = {*_SIZES.values(), "attention.key_length", "attention.head_count_kv"}
        read |= {"attention.layer_norm_rms_epsilon", "rope.freq_base"}
        for key, value in self._own.items():
            if key not in read and value not in _NEUTRAL.get(key, (said.get(key),)):
                raise SourceError(f"{self._name} has {self.architecture}.{key} = {value!s:.40}, which is not read here")
        if self.architecture != "qwen3":
            self._require_usual_head(found)
        return found

    def in_order_of_module(self, key: str, array: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Undo what is done to the weights of Llama's queries and keys, whose halves are interleaved in the file."""
        what = "" if (match := _TENSOR.fullmatch(key)) is None else match["what"]
        if self.architecture != "llama" or what not in ("attn_q", "attn_k"):
            return array
        heads = self._whole("attention.head_count")
        if what == "attn_k":
            heads = self._whole("attention.head_count_kv", heads)
        if heads < 1 or len(array) % (2 * heads):
            raise SourceError(f"{self._name}: {key} has {len(array)} rows, which {heads} heads cannot share")
        halves = array.reshape(heads, len(array) // heads // 2, 2, *array.shape[1:])
        return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(array.shape))

    def _require_usual_head(self, found: Mapping[str, Any]) -> None:
        """Qwen2's module has no other size of a head than this, and Llama's rows have none in GGUF."""
        if found["head_dim"] * found["num_attention_heads"] != found["hidden_size"]:
            raise SourceError(
                f"{self._name}: {found['num_attention_heads']} heads of {found['head_dim']} are not its "
                f"{found['hidden_size']} columns"
            )

    def _whole(self, key: str, default: int | None = None) -> int:
        found = self._own.get(key, default)
        if type(found) is not int:
            raise SourceError(f"{self._name}: {self.architecture}.{key} is {found!s:.40}, not one whole number")
        return found

    def _number(self, key: str, default: float | None = None) -> float:
        found = self._own.get(key, default)
        if type(found) is not float:
            raise SourceError(f"{self._name}: {self.architecture}.{key} is {found!s:.40}, not a number")
        return found


def named_types(model: GgufModel) -> Iterator[str]:
    """Name the types of few bits in which the file holds weights, each once."""
    return iter(sorted(set(model.types.values()) - {PLAIN}))


def bounds_of(model: GgufModel) -> Precision | None:
    """Choose the precision that rounds as llama.cpp does what it multiplies with weights of these types; None: float32.

    With weights in blocks it rounds to steps of 1/127 of the largest of a block, so by 1/254 of that at most: about the
    2^-8 of bfloat16. With float16 it rounds to that.
    """
    types = set(named_types(model))
    if not types:
        return None
    return "fp16" if types == {"F16"} else "bf16"
