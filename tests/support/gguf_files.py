"""Small GGUF files of models of transformers, written by the package gguf as llama.cpp's own converter writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from fairlap.request.fields.source import Source
from own_generators import generating_folder

SIZES = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "num_hidden_layers": 2,
    "vocab_size": 48,
    "max_position_embeddings": 64,
}
_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def folder_for_gguf(path: Path, name: str = "llama", **changes: Any) -> Path:
    """Make the folder of a model whose rows can be quantized: they are of whole blocks."""
    return generating_folder(path, name, **{**SIZES, **changes})


def gguf_of(
    folder: Path,
    file: Path,
    kind: str = "F32",
    *,
    keys: Mapping[str, Any] | None = None,
    leave_out: str = "",
    tokenizer: Callable[[Any], object] = lambda writer: writer.add_tokenizer_model("no_vocab"),
    **more: Any,
) -> Path:
    """Write the model of the folder, its products in this type; ``keys`` are whole or other numbers of the header."""
    import gguf
    from safetensors.numpy import load_file
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    writer = gguf.GGUFWriter(file, config.model_type)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    tokenizer(writer)
    for key, value in (keys or {}).items():
        add = writer.add_uint32 if isinstance(value, int) else writer.add_float32
        (writer.add_string if isinstance(value, str) else add)(f"{config.model_type}.{key}", value)
    for name, array in load_file(folder / "model.safetensors").items():
        owner, _, part = name.rpartition(".")
        layer, place = owner.split(".", 3)[2:] if owner.startswith("model.layers.") else ("", owner)
        named = f"{f'blk.{layer}.' if layer else ''}{_NAMES[place]}.{part}"
        if named == leave_out:
            continue
        if config.model_type == "llama" and place.endswith(("q_proj", "k_proj")):
            heads = config.num_attention_heads if place.endswith("q_proj") else config.num_key_value_heads
            array = _interleaved(array, heads)
        if array.ndim == 1 or kind == "F32":
            writer.add_tensor(named, array.astype(np.float32))
        else:
            chosen = gguf.GGMLQuantizationType[kind]
            writer.add_tensor(named, gguf.quantize(array.astype(np.float32), chosen), raw_dtype=chosen)
    for named, array in more.items():
        writer.add_tensor(named.replace("__", "."), array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def gguf_source(file: Path, generate: tuple[int, int] | None, batch: int | None = None) -> Source:
    return Source(file.name, str(file), str(file.parent), generate=generate, batch=batch)


def _interleaved(array: Any, heads: int) -> Any:
    """Order the rows of each head as llama.cpp turns them: the first of one half, the first of the other, and so on."""
    halves = array.reshape(heads, 2, len(array) // heads // 2, *array.shape[1:])
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(array.shape)
