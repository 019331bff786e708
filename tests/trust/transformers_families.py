"""Race one small model of each family of transformers in six contestants, with drawn weights.

    make trust-transformers                                       all of them, into build/transformers.md
    python -m tests.trust.transformers_families t5 swin mixtral   some, into the terminal alone

A cell is the error of a contestant that finished, or the code of the one that did not; its cause is in the last column.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .wild_models import Tried, reason, rows_of, shortened, table_of

ON = {
    "torch": "torch",
    "compile": "torch:compile",
    "onnxruntime": "onnxruntime",
    "openvino": "openvino",
    "jax": "jax",
    "tensorflow": "tensorflow",
}
_TEXT = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 32,
}
_DECODER = {**_TEXT, "num_key_value_heads": 1, "head_dim": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_PATCHES = {
    **{name: _TEXT[name] for name in ("hidden_size", "num_hidden_layers", "num_attention_heads")},
    "intermediate_size": 32,
    "image_size": 16,
    "patch_size": 8,
}
_TOKENS = ("--dims", "batch=2,sequence=6")
_IMAGES = ("--dims", "batch=2,height=32,width=32")
_STAGES = {"hidden_sizes": [8, 16], "depths": [1, 1]}


@dataclass(frozen=True)
class Family:
    architecture: str
    config: Mapping[str, Any]
    sizes: Sequence[str] = _TOKENS


FAMILIES = {
    "bert": Family("BertForSequenceClassification", _TEXT),
    "distilbert": Family(
        "DistilBertForMaskedLM",
        {"vocab_size": 40, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, "max_position_embeddings": 32},
    ),
    "roberta": Family("RobertaForMaskedLM", {**_TEXT, "pad_token_id": 1}),
    "modernbert": Family(
        "ModernBertForMaskedLM",
        {**_TEXT, **dict.fromkeys(("pad_token_id", "bos_token_id", "cls_token_id"), 0), "eos_token_id": 1}
        | {"sep_token_id": 1, "local_attention": 4},
    ),
    "gpt2": Family(
        "GPT2LMHeadModel",
        {"vocab_size": 40, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32}
        | {"bos_token_id": 0, "eos_token_id": 0},
    ),
    "llama": Family("LlamaForCausalLM", _DECODER),
    "qwen3": Family("Qwen3ForCausalLM", _DECODER),
    "mistral": Family("MistralForCausalLM", {**_DECODER, "sliding_window": 4}),
    "gemma3_text": Family("Gemma3ForCausalLM", {**_DECODER, "sliding_window": 4, "query_pre_attn_scalar": 8}),
    "phi3": Family("Phi3ForCausalLM", {name: each for name, each in _DECODER.items() if name != "head_dim"}),
    "mixtral": Family("MixtralForCausalLM", {**_DECODER, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "mamba": Family("MambaForCausalLM", {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "state_size": 4}),
    "t5": Family(
        "T5ForConditionalGeneration",
        {"vocab_size": 40, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
        | {"decoder_start_token_id": 0},
    ),
    "vit": Family("ViTForImageClassification", _PATCHES, ("--dims", "batch=2")),
    "yolos": Family(
        "YolosForObjectDetection",
        {**_PATCHES, "image_size": [16, 16], "num_detection_tokens": 4},
        ("--dims", "batch=2,height=16,width=16"),
    ),
    "convnext": Family("ConvNextForImageClassification", {**_STAGES, "num_stages": 2}, _IMAGES),
    "resnet": Family("ResNetForImageClassification", {**_STAGES, "embedding_size": 8, "layer_type": "basic"}, _IMAGES),
    "mobilenet_v2": Family("MobileNetV2ForImageClassification", {"depth_multiplier": 0.25}, _IMAGES),
    "segformer": Family(
        "SegformerForSemanticSegmentation",
        {"num_encoder_blocks": 2, "depths": [1, 1], "sr_ratios": [2, 1], "hidden_sizes": [8, 16]}
        | {"patch_sizes": [7, 3], "strides": [4, 2], "num_attention_heads": [1, 2], "mlp_ratios": [2, 2]}
        | {"decoder_hidden_size": 16},
        _IMAGES,
    ),
    "swin": Family(
        "SwinForImageClassification",
        {"image_size": 32, "patch_size": 4, "embed_dim": 8, "depths": [2, 1], "num_heads": [1, 2], "window_size": 4},
        ("--dims", "batch=2"),
    ),
    "clip": Family(
        "CLIPModel",
        {"text_config": {**_TEXT, "eos_token_id": 2, "bos_token_id": 1}, "vision_config": _PATCHES}
        | {"projection_dim": 8},
        ("--shapes", "input_ids:2x6,pixel_values:2x3x16x16"),
    ),
    "wav2vec2": Family(
        "Wav2Vec2ForCTC",
        {name: _TEXT[name] for name in ("hidden_size", "num_hidden_layers", "num_attention_heads")}
        | {"intermediate_size": 32, "conv_dim": [8, 8], "conv_stride": [5, 4], "conv_kernel": [10, 4]}
        | {"num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2},
        ("--shapes", "input_values:2x400"),
    ),
    "whisper": Family(
        "WhisperForConditionalGeneration",
        {"vocab_size": 40, "num_mel_bins": 8, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2}
        | {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
        | {"max_source_positions": 16, "max_target_positions": 16, "decoder_start_token_id": 1}
        | {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "begin_suppress_tokens": None},
        ("--shapes", "input_features:2x8x32,decoder_input_ids:2x4"),
    ),
    "patchtst": Family(
        "PatchTSTForPrediction",
        {"num_input_channels": 2, "context_length": 32, "patch_length": 8, "patch_stride": 8, "d_model": 16}
        | {"num_hidden_layers": 2, "num_attention_heads": 2, "ffn_dim": 32, "prediction_length": 4},
        ("--shapes", "past_values:2x32x2"),
    ),
}


def write_config(folder: Path, name: str) -> None:
    family = FAMILIES[name]
    config = {"model_type": name, "architectures": [family.architecture], **family.config}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


def tried(name: str, on: Mapping[str, str] = ON) -> Tried:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / name
        write_config(folder, name)
        rows, errors = rows_of(f"hf:{folder}", FAMILIES[name].sizes, list(on.values()))
    found = Tried(FAMILIES[name].architecture, name)
    if not rows:
        found.reasons.append(reason(errors))
    for short, contestant in on.items():
        row = rows.get(contestant)
        if row is not None and row["outcome"] == "finished":
            found.cells[short] = f"{row['error_relative']:.0e}"
        elif row is not None:
            found.cells[short] = row["code"]
            found.reasons.append(f"{short}: {shortened(row['message'])}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Race one small model of each family of transformers.")
    parser.add_argument("families", nargs="*", default=list(FAMILIES), help="such as t5")
    parser.add_argument("--out", type=Path, help="a file for the table, besides the terminal")
    asked = parser.parse_args()
    found = []
    for name in asked.families:
        found.append(tried(name))
        print(found[-1].row_on(ON), flush=True)
    whole = sum(each.races == len(ON) for each in found)
    text = f"{whole} of {len(found)} families race in all {len(ON)}.\n\n{table_of(found, ON, ('class', 'family'))}"
    print(text)
    if asked.out is not None:
        asked.out.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
