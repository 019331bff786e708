"""GGUF files that are not read whole are refused: what is left out would be another model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.gguf_files.gguf_models import read_gguf
from fairlap.models.sources.registry import kind_of
from gguf_files import folder_for_gguf, gguf_of, gguf_source
from onnx_files import code_of

gguf = pytest.importorskip("gguf", reason="`make test` installs it and runs this")

KEYS = {
    "block_count": 1,
    "embedding_length": 32,
    "feed_forward_length": 32,
    "context_length": 16,
    "attention.head_count": 2,
    "attention.layer_norm_rms_epsilon": 1e-6,
}
TENSORS = ("token_embd.weight", "output_norm.weight", "blk.0.attn_q.weight")


def written(file: Path, architecture: str = "llama", tensors: tuple[str, ...] = TENSORS, **keys: Any) -> Path:
    """Write a header and tensors of ones; ``keys`` have a double line for a dot, and None leaves one out."""
    writer = gguf.GGUFWriter(file, architecture)
    for key, value in {**KEYS, **{key.replace("__", "."): value for key, value in keys.items()}}.items():
        name = key if key.startswith(("general.", "split.")) else f"{architecture}.{key}"
        if isinstance(value, str):
            writer.add_string(name, value)
        elif isinstance(value, float):
            writer.add_float32(name, value)
        elif value is not None:
            writer.add_uint32(name, value)
    for name in tensors:
        writer.add_tensor(name, np.arange(8 * 32, dtype=np.float32).reshape(8, 32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def test_a_header_gives_sizes_types_and_the_order_of_rows_that_transformers_has(tmp_path: Path) -> None:
    assert kind_of("folder/Model-Q4_0.gguf") is kind_of("m.GGUF")
    model, weights = read_gguf(written(tmp_path / "m.gguf", vocab_size=8, rope__freq_base=500.0), "m.gguf")
    assert model.config["vocab_size"] == 8
    assert model.config["num_key_value_heads"] == 2
    assert model.config["head_dim"] == 16
    assert model.config["rope_parameters"] == {"rope_type": "default", "rope_theta": 500.0}
    assert model.config["tie_word_embeddings"] is True
    assert set(model.types.values()) == {"F32"}
    rows = weights["model.layers.0.self_attn.q_proj.weight"][:, 0] / 32
    assert rows.tolist() == [0, 2, 1, 3, 4, 6, 5, 7]  # of each of two heads, those of one half first
    assert (weights["model.embed_tokens.weight"][:, 0] / 32).tolist() == list(range(8))


@pytest.mark.parametrize(
    "changes",
    [
        {"architecture": "bert"},
        {"tensors": (*TENSORS, "blk.0.ffn_gate_exps.weight")},
        {"tensors": (*TENSORS, "rope_long.weight")},
        {"expert_count": 8},
        {"rope__scaling__type": "linear"},
        {"attention__sliding_window": 4096},
        {"vocab_size": 9},
        {"attention__value_length": 8},
        {"split__count": 2},
        {"general__type": "adapter"},
        {"block_count": None},
        {"attention__layer_norm_rms_epsilon": None},
        {"attention__head_count": 3},
        {"attention__head_count": 0},
    ],
)
def test_what_would_change_the_model_and_is_not_read_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(SourceError) as refused:
        read_gguf(written(tmp_path / "m.gguf", **changes), "m.gguf")
    assert refused.value.code == "E_SOURCE"
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
def test_a_file_that_ends_early_is_refused(tmp_path: Path, share: float) -> None:
    file = written(tmp_path / "m.gguf")
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    assert code_of(gguf_source(file, (4, 3)), tmp_path) == "E_SOURCE"


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"leave_out": "blk.1.ffn_up.weight"},
        {"blk__2__attn_norm__weight": np.ones(64, np.float32)},
        {"output_norm__bias": np.ones(64, np.float32)},
        {"rope_freqs__weight": np.ones(5, np.float32)},
        {"keys": {"attention.key_length": 16}},
    ],
)
def test_a_model_that_is_not_whole_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    for module in ("torch", "transformers"):
        pytest.importorskip(module, reason="`make test` installs it and runs this")
    file = gguf_of(folder_for_gguf(tmp_path / "hf"), tmp_path / "m.gguf", **changes)
    assert code_of(gguf_source(file, (4, 3)), tmp_path) == "E_SOURCE"
