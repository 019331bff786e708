"""Small models of transformers as users have them in folders: a configuration, and weights or none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "vocab_size": 40,
    "max_position_embeddings": 32,
}
_BOTH_SIDES = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "max_position_embeddings": 32,
}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "bert": {"model_type": "bert", "architectures": ["BertForSequenceClassification"], **_SMALL},
    "gpt2": {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "n_embd": 16,
        "n_layer": 2,
        "n_head": 2,
        "n_positions": 32,
        "vocab_size": 40,
        "bos_token_id": 0,
        "eos_token_id": 0,
    },
    "qwen2": {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], **_SMALL, "num_key_value_heads": 1},
    "llama": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], **_SMALL, "num_key_value_heads": 1},
    "mixtral": {
        "model_type": "mixtral",
        "architectures": ["MixtralForCausalLM"],
        **_SMALL,
        "num_key_value_heads": 1,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
    },
    "vit": {
        "model_type": "vit",
        "architectures": ["ViTForImageClassification"],
        **{name: _SMALL[name] for name in ("hidden_size", "num_hidden_layers", "num_attention_heads")},
        "intermediate_size": 32,
        "image_size": 16,
        "patch_size": 8,
    },
    "t5": {
        "model_type": "t5",
        "architectures": ["T5ForConditionalGeneration"],
        "vocab_size": 40,
        "d_model": 16,
        "d_kv": 8,
        "d_ff": 32,
        "num_layers": 2,
        "num_heads": 2,
        "decoder_start_token_id": 0,
    },
    "bart": {
        "model_type": "bart",
        "architectures": ["BartForConditionalGeneration"],
        **_BOTH_SIDES,
        "vocab_size": 40,
        "forced_eos_token_id": None,
    },
    "marian": {
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        **_BOTH_SIDES,
        "vocab_size": 40,
        "pad_token_id": 39,
        "decoder_start_token_id": 39,
        "forced_eos_token_id": None,
    },
    "resnet": {
        "model_type": "resnet",
        "architectures": ["ResNetForImageClassification"],
        "embedding_size": 8,
        "hidden_sizes": [8, 16],
        "depths": [1, 1],
        "layer_type": "basic",
        "num_labels": 5,
    },
}
SIZES = dict.fromkeys(("bert", "gpt2", "qwen2", "mixtral"), "batch=2,sequence=6") | {
    "vit": "batch=2",
    "resnet": "batch=2,height=16,width=16",
}


def folder_of(path: Path, name: str, *, weights: bool = False, **changes: Any) -> Path:
    """With a configuration alone, or with weights in safetensors too."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps({**CONFIGURATIONS[name], **changes}))
    if weights:
        import torch
        import transformers

        torch.manual_seed(5)
        config = transformers.AutoConfig.from_pretrained(path, local_files_only=True)
        getattr(transformers, CONFIGURATIONS[name]["architectures"][0])(config).save_pretrained(path)
    return path
