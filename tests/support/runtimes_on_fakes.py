"""Stand-ins for cyllama and openvino_genai: their interfaces as the adapters use them, over a model of one line."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from fairlap.models.spec import Integers, Tensor

if TYPE_CHECKING:
    import pytest

VOCABULARY = 11
RELEASE, VERSION = "b9190", "0.2.18"
HEADS, HEAD, LAYERS, CELLS = 2, 8, 3, 256


def next_token(tokens: list[int]) -> int:
    """Of the whole text, so that a token that was lost, doubled or misplaced shows."""
    return sum(place * token for place, token in enumerate(tokens, 1)) % VOCABULARY


def answer_to(prompt: list[int], count: int, handed: list[int] | None = None) -> list[int]:
    """After its own tokens, or after those that are handed over."""
    text, found = list(prompt), []
    for place in range(count):
        found.append(next_token(text))
        text.append(found[-1] if handed is None else handed[place] if place < len(handed) else 0)
    return found


def work_of(prompts: Any, continuation: Any, on_disk: Any, **changed: Any) -> Any:
    """Make what an adapter asks of a work whose user's model generates."""
    given = {"input_ids": np.array(prompts, np.int64), "continuation": np.array(continuation, np.int64)}
    spec = SimpleNamespace(
        continuation="continuation",
        inputs=tuple(Tensor(name, each.shape, Integers(0, VOCABULARY), "int64") for name, each in given.items()),
        tokens_of_an_answer=given["continuation"].shape[1] + 1,
    )
    usual = {"spec": spec, "package": "/opened", "batch": len(prompts), "mode": "infer", "precision": "fp32"}
    found = {**usual, "inputs": given, "implementation": lambda _: on_disk, "why_not_in": lambda *_: ""}
    return SimpleNamespace(**{**found, **changed})


class _Context:
    def __init__(self, _model: Any, params: Any, verbose: bool = True) -> None:
        self.params, self.n_batch, self.n_ctx = params, params.n_batch, CELLS
        self.texts: dict[int, list[int]] = {}
        self.reads: list[int] = []
        self.chosen: list[int | None] = []

    def n_threads(self) -> int:
        return int(self.params.n_threads)

    def memory_seq_rm(self, sequence: int, start: int, _end: int) -> bool:
        del self.texts.setdefault(sequence, [])[start:]
        return True

    def decode(self, batch: Any) -> int:
        self.reads.append(batch.n_tokens)
        self.chosen = []
        for token, place, [sequence], wanted in batch.added:
            text = self.texts.setdefault(sequence, [])
            assert place == len(text), "a token has the place after those of its sequence"
            text.append(token)
            self.chosen.append(next_token(text) if wanted else None)
        return 0


class _Batch:
    def __init__(self, *, n_tokens: int, embd: int, n_seq_max: int, verbose: bool) -> None:
        self.room, self.sequences = n_tokens, n_seq_max
        self.added: list[tuple[int, int, list[int], bool]] = []

    @property
    def n_tokens(self) -> int:
        return len(self.added)

    def clear(self) -> None:
        self.added.clear()

    def add(self, token: int, place: int, sequences: list[int], logits: bool) -> None:
        assert len(self.added) < self.room
        assert max(sequences) < self.sequences
        self.added.append((token, place, sequences, logits))


class _Sampler:
    def __init__(self) -> None:
        self.added: list[str] = []

    def add_greedy(self) -> None:
        self.added.append("greedy")

    def sample(self, context: _Context, place: int) -> int:
        assert self.added == ["greedy"]
        found = context.chosen[place]
        assert found is not None, "logits were not asked for at this token"
        return found


def install_cyllama(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[_Context]:
    """Return the contexts that are made."""
    made: list[_Context] = []

    def context(*given: Any, **named: Any) -> _Context:
        made.append(_Context(*given, **named))
        return made[-1]

    def model(path: str, _params: Any, verbose: bool = True) -> Any:
        named = {"general.architecture": "llama", "llama.attention.key_length": str(HEAD)}
        sizes = {"n_layer": LAYERS, "n_head": 2 * HEADS, "n_head_kv": HEADS, "n_embd": 2 * HEADS * HEAD}
        return SimpleNamespace(path=path, metadata=lambda: named, **sizes)

    llama_cpp = ModuleType("cyllama.llama.llama_cpp")
    vars(llama_cpp).update(
        disable_logging=lambda: None,
        ggml_backend_load_all=lambda: None,
        LlamaModelParams=SimpleNamespace,
        LlamaModel=model,
        LlamaContextParams=lambda: SimpleNamespace(n_batch=16),
        LlamaContext=context,
        LlamaBatch=_Batch,
        LlamaSampler=_Sampler,
    )
    package, inner = ModuleType("cyllama"), ModuleType("cyllama.llama")
    package.__file__ = str(folder / "__init__.py")
    (folder / "build_config.json").write_text(json.dumps({"versions": {"llama_cpp_version": RELEASE}}))
    inner.llama_cpp = llama_cpp  # type: ignore[attr-defined]
    for name, module in (("cyllama", package), ("cyllama.llama", inner), ("cyllama.llama.llama_cpp", llama_cpp)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(importlib.metadata, "version", lambda _: VERSION)
    return made


class _Handle:
    def __init__(self, prompt: list[int], config: Any) -> None:
        self.text, self.left = list(prompt), config.max_new_tokens
        self.unread: list[int] = []
        self.is_read = False

    def step(self) -> int:
        """Return how many tokens are read."""
        count = 1 if self.is_read else len(self.text)
        self.is_read = True
        self.text.append(next_token(self.text))
        self.unread.append(self.text[-1])
        self.left -= 1
        return count

    def read(self) -> dict[int, Any]:
        found, self.unread = self.unread, []
        return {0: SimpleNamespace(generated_ids=found)}

    def cancel(self) -> None:
        self.left = 0


class _Pipeline:
    def __init__(self, folder: str, scheduler: Any, device: str, properties: dict[str, Any]) -> None:
        self.folder, self.scheduler, self.device, self.properties = folder, scheduler, device, properties
        self.handles: dict[int, _Handle] = {}
        self.configs: list[Any] = []
        self.largest_step = 0

    def add_request(self, number: int, prompt: Any, config: Any) -> _Handle:
        assert number not in self.handles
        assert prompt.shape[0] == 1
        self.configs.append(config)
        self.handles[number] = _Handle(prompt[0].tolist(), config)
        return self.handles[number]

    def has_non_finished_requests(self) -> bool:
        return any(each.left for each in self.handles.values())

    def step(self) -> None:
        read = sum(each.step() for each in self.handles.values() if each.left)
        self.largest_step = max(self.largest_step, read)
        assert read <= self.scheduler.max_num_batched_tokens

    def get_metrics(self) -> Any:
        return SimpleNamespace(kv_cache_size_in_bytes=4096)


class _Config(SimpleNamespace):
    def set_eos_token_id(self, token: int) -> None:
        self.eos_token_id = token


def install_openvino_genai(monkeypatch: pytest.MonkeyPatch) -> list[_Pipeline]:
    """Return the pipelines that are made."""
    made: list[_Pipeline] = []

    def pipeline(*given: Any) -> _Pipeline:
        made.append(_Pipeline(*given))
        return made[-1]

    genai, openvino = ModuleType("openvino_genai"), ModuleType("openvino")
    vars(genai).update(
        SchedulerConfig=lambda: SimpleNamespace(enable_prefix_caching=True, max_num_batched_tokens=4, max_num_seqs=256),
        GenerationConfig=_Config,
        ContinuousBatchingPipeline=pipeline,
    )
    vars(openvino).update(Tensor=np.asarray)
    monkeypatch.setitem(sys.modules, "openvino_genai", genai)
    monkeypatch.setitem(sys.modules, "openvino", openvino)
    monkeypatch.setattr(importlib.metadata, "version", lambda _: VERSION)
    return made
