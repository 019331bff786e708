"""A small language model that several servers can read: a folder of transformers, and the same weights as GGUF.

Its tokens are bytes and some pairs of letters, and only printable ones can be the most likely, so that no server ends
an answer early or cuts a letter.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from fairlap.models.sources.python_models.generating.genai_config import GENAI_CONFIG
from gguf_files import gguf_of
from own_generators import SHARP

END = "<|endoftext|>"
_MERGES = ("t h", "h e", "i n", "e r", "a n", "r e", "o n", "Ġ t", "Ġ a", "th e")
_TEMPLATE = "{% for each in messages %}{{ each['role'] }}: {{ each['content'] }}\n{% endfor %}"
_SMALL = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "max_position_embeddings": 512,
}


def _letters_of_bytes() -> list[str]:
    """Write each byte as a letter, as GPT-2's vocabulary does."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


def vocabulary() -> list[str]:
    return [*_letters_of_bytes(), *(each.replace(" ", "") for each in _MERGES), END]


def model_folder(path: Path, **sizes: int) -> Path:
    """Write the model with its tokenizer."""
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    words = vocabulary()
    merges = [(first, second) for first, second in map(str.split, _MERGES)]
    tokenizer = Tokenizer(models.BPE({word: place for place, word in enumerate(words)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, chat_template=_TEMPLATE
    ).save_pretrained(path)
    of_words = {"vocab_size": len(words), "bos_token_id": None, "eos_token_id": len(words) - 1}
    config = transformers.LlamaConfig(**{**_SMALL, **SHARP, **of_words, "tie_word_embeddings": False, **sizes})
    torch.manual_seed(7)
    model = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for place, word in enumerate(words):
            if not (word.isascii() and word.isprintable()) or word == END:
                model.lm_head.weight[place] = 0.0
    model.save_pretrained(path)
    return path


def gguf_with_tokenizer(folder: Path, file: Path, kind: str = "F32") -> Path:
    """Write it in this type with the same tokenizer, as llama.cpp reads GPT-2's."""

    def add(writer: Any) -> None:
        words = vocabulary()
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_list(words)
        writer.add_token_types([3 if word == END else 1 for word in words])
        writer.add_token_merges(list(_MERGES))
        writer.add_eos_token_id(len(words) - 1)
        writer.add_add_bos_token(False)

    return gguf_of(folder, file, kind, tokenizer=add)


def genai_folder(folder: Path, path: Path, positions: int = 96) -> Path:
    """Write the step of the model as an ONNX file that ONNX Runtime GenAI reads, with the same tokenizer."""
    import torch
    import transformers
    from fairlap.models.sources.python_models.generating.causal_steps import CausalSteps
    from fairlap.models.sources.python_models.generating.decoder_exports import exported_decoder

    path.mkdir()
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    config = model.config
    past: list[tuple[int, ...]] = [(1, config.num_key_value_heads, 1, config.head_dim)] * (2 * config.num_hidden_layers)
    with torch.no_grad():
        route = exported_decoder(CausalSteps(model, positions), past, config.vocab_size, path)["onnx"]
    assert not route.why_not, route.why_not
    file = path / GENAI_CONFIG
    file.write_text(file.read_text().replace('"eos_token_id": 0', f'"eos_token_id": {config.eos_token_id}'))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(folder / name, path / name)
    return path
