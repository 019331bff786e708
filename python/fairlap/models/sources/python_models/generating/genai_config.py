"""What ONNX Runtime GenAI needs beside an exported step: a file that names its inputs, its outputs and its sizes.

It answers token by token through the same ONNX file as ONNX Runtime.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GENAI_CONFIG = "genai_config.json"
_ANY_TOKEN = 0  # the library asks for tokens that end an answer and fill it up; of tokens handed over none does


def write_genai_config(file: Path, past: list[tuple[int, ...]], vocabulary: int, positions: int) -> None:
    """Beside the ONNX file; ``past`` has the shapes of the keys and the values of every layer in turn."""
    _, heads, _, head = past[0]
    config: dict[str, Any] = {
        "model": {
            "type": "decoder",
            "vocab_size": vocabulary,
            "context_length": positions + 1,
            "bos_token_id": _ANY_TOKEN,
            "eos_token_id": _ANY_TOKEN,
            "pad_token_id": _ANY_TOKEN,
            "decoder": {
                "filename": file.name,
                "num_hidden_layers": len(past) // 2,
                "num_key_value_heads": heads,
                "head_size": head,
                "inputs": {
                    "input_ids": "input_ids",
                    "past_key_names": "past_keys_%d",
                    "past_value_names": "past_values_%d",
                },
                "outputs": {
                    "logits": "logits",
                    "present_key_names": "keys_%d",
                    "present_value_names": "values_%d",
                },
            },
        },
        "search": {"max_length": positions + 1, "do_sample": False, "past_present_share_buffer": False},
    }
    file.with_name(GENAI_CONFIG).write_text(json.dumps(config, indent=2) + "\n")
