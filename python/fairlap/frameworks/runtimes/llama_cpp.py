"""llama.cpp on GGUF files as they are, through cyllama, whose wheels contain it: its own greedy sampler chooses.

cyllama would hand out logits as lists of Python's numbers, and in 0.2.18 raises AttributeError, so answers are proven
by their tokens. With 32,000 tokens such a list takes 1 ms, as long as a step of a small model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from fairlap.engine.measurement import Notice
from fairlap.frameworks.contract import (
    UNKNOWN,
    Contestant,
    Framework,
    Phase,
    Settings,
    Unsupported,
    refuse_what_is_unknown,
)
from fairlap.frameworks.contract_parts.generation import Generation, KeptPrompt, Tokens, answer_calls
from fairlap.models.workload import Workload

_F32, _F16 = 0, 1  # of ggml's types
_BYTES = {_F32: 4, _F16: 2}
_RELEASES = "build_config.json"  # in the package


class LlamaCpp(Framework):
    name = "llama-cpp"
    packages = ("cyllama==0.2.18",)
    module = "cyllama"
    implementation = name
    options: ClassVar = {KeptPrompt.OPTION: ("kept",)}
    generates = True
    generates_only = "GGUF files"
    no_precision: ClassVar = dict.fromkeys(
        ("fp16", "bf16", "autocast", "int8", "tf32"), "it computes in the types of the file"
    )

    @classmethod
    def files(cls, work: Workload) -> tuple[Path, ...]:
        return (work.implementation(cls.implementation).file,) if work.package.startswith("/") else ()

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        if not work.spec.continuation or not work.package.startswith("/"):
            raise Unsupported(self.why_only_generates())
        on_disk = work.implementation(self.implementation)
        with phase("import"):
            import cyllama
            from cyllama.llama import llama_cpp
        from importlib.metadata import version

        self._version = version("cyllama")
        llama_cpp.disable_logging()
        # What llama.cpp holds by default is rounded to float16, which would not be the precision of a file in float32.
        cached_in = _F16 if on_disk.types else _F32
        with phase("build"):
            llama_cpp.ggml_backend_load_all()
            asked = llama_cpp.LlamaModelParams()
            asked.n_gpu_layers = 0
            model = llama_cpp.LlamaModel(str(on_disk.file), asked, verbose=False)
            context = _context(llama_cpp, model, work, wanted.threads, cached_in)
        kept = KeptPrompt() if KeptPrompt.OPTION in wanted.options else None
        steps = _Steps(llama_cpp, context, work, kept)
        cached_bytes = _cache_bytes(model, context, cached_in)
        generation = Generation(steps.first, steps.following, None, lambda _: cached_bytes)
        return Contestant(
            **answer_calls(work, generation, *_rounding(on_disk.types)),
            weights=dict,
            in_force={
                "threads": str(context.n_threads()),
                "precision": _precision(on_disk.types),
                "cache": "f16" if cached_in == _F16 else "f32",
                "weights": "read from the model's file; llama.cpp cannot be asked",
                "llama.cpp": _release(Path(cyllama.__file__).with_name(_RELEASES)),
                **(KeptPrompt.IN_FORCE if kept else {}),
            },
            no_memory_because="llama.cpp reports no statistics of its memory here",
        )


def _context(llama_cpp: Any, model: Any, work: Workload, threads: int, cached_in: int) -> Any:
    """Make room for all prompts and answers, and for all prompts in one call; they are read 512 tokens at a time."""
    tokens = sum(tensor.sized(1)[1] for tensor in work.spec.inputs)
    asked = llama_cpp.LlamaContextParams()
    asked.n_ctx, asked.n_seq_max = tokens * work.batch, work.batch
    asked.n_batch = max(asked.n_batch, tokens * work.batch)
    asked.n_threads = asked.n_threads_batch = threads
    asked.type_k = asked.type_v = cached_in
    return llama_cpp.LlamaContext(model, asked, verbose=False)


class _Steps:
    """The state is how many tokens of each prompt are in the cache; a sequence of it belongs to a prompt."""

    def __init__(self, llama_cpp: Any, context: Any, work: Workload, kept: KeptPrompt | None) -> None:
        self._context, self._kept = context, kept
        self._batch = llama_cpp.LlamaBatch(n_tokens=context.n_batch, embd=0, n_seq_max=work.batch, verbose=False)
        self._greedy = llama_cpp.LlamaSampler()
        self._greedy.add_greedy()

    def first(self, prompts: Tokens) -> tuple[list[int], None, int]:
        known = 0 if self._kept is None else self._kept.known(prompts)
        for sequence in range(len(prompts)):
            self._context.memory_seq_rm(sequence, known, -1)
        return self._read(prompts[:, known:].tolist(), known)

    def following(self, known: int, tokens: Tokens) -> tuple[list[int], None, int]:
        return self._read(tokens.tolist(), known)

    def _read(self, rows: Sequence[Sequence[int]], known: int) -> tuple[list[int], None, int]:
        batch, ends = self._batch, []
        batch.clear()
        for sequence, row in enumerate(rows):
            for place, token in enumerate(row, known):
                batch.add(token, place, [sequence], place == known + len(row) - 1)
            ends.append(batch.n_tokens - 1)
        self._context.decode(batch)
        sample, context = self._greedy.sample, self._context
        return [sample(context, end) for end in ends], None, known + len(rows[0])


def _cache_bytes(model: Any, context: Any, cached_in: int) -> int:
    """Count all cells, of which llama.cpp makes 256, or a multiple of it, for each prompt."""
    named = model.metadata()
    architecture, usual = named["general.architecture"], model.n_embd // model.n_head
    sizes = (int(named.get(f"{architecture}.attention.{part}_length", usual)) for part in ("key", "value"))
    return int(context.n_ctx * model.n_layer * model.n_head_kv * sum(sizes) * _BYTES[cached_in])


def _precision(types: Iterable[str]) -> str:
    named = ", ".join(types)
    return f"{UNKNOWN}: it rounds to the types of the file, {named}, and cannot be asked" if named else "fp32"


def _rounding(types: Sequence[str]) -> list[Notice]:
    if not types:
        return []
    text = (
        f"what is multiplied with weights in {', '.join(types)} is rounded too, to 8 bits where these are quantized, "
        "and the cache to float16; others compute in float32, with the weights expanded"
    )
    return [Notice("W_FILE_PRECISION", text)]


def _release(file: Path) -> str:
    """Find the release of llama.cpp that the package was built from."""
    try:
        return str(json.loads(file.read_bytes())["versions"]["llama_cpp_version"])
    except (OSError, ValueError, KeyError, TypeError):
        return f"{UNKNOWN}: the package does not name it"
