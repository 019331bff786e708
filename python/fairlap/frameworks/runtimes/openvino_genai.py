"""OpenVINO GenAI: its pipeline of continuous batching, step by step, over a folder with attention that it replaces.

It chooses every token itself and hands out no logits, so answers are proven by their tokens, each after those that it
chose before. Its default is a cache in 8 bits, which would be another precision; here it is in float32.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, ClassVar

from fairlap.frameworks.adapter_parts.onnx_graph import files_of
from fairlap.frameworks.contract import (
    UNKNOWN,
    Contestant,
    Framework,
    Phase,
    Settings,
    Unsupported,
    refuse_what_is_unknown,
)
from fairlap.frameworks.contract_parts.generation import Generation, Tokens, answer_calls
from fairlap.models.workload import Workload

_ANY_TOKEN = 0  # the library asks for a token that ends an answer; none does here


class OpenVinoGenAi(Framework):
    name = "openvino-genai"
    packages = ("openvino-genai==2026.4.1.0",)
    module = "openvino_genai"
    implementation = name
    generates = True
    generates_only = "causal language models of your own"
    environment: ClassVar = {"OPENVINO_TELEMETRY": "0"}
    no_precision: ClassVar = dict.fromkeys(
        ("fp16", "bf16", "autocast", "int8", "tf32"), "it is raced in float32, the precision of the exported folder"
    )

    @classmethod
    def files(cls, work: Workload) -> tuple[Path, ...]:
        return files_of(work, cls.implementation) if work.package.startswith("/") else ()

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        files = self.files(work)
        if not work.spec.continuation or not files:
            raise Unsupported(self.why_only_generates())
        with phase("import"):
            import openvino
            import openvino_genai
        from importlib.metadata import version

        self._version = version(self.implementation)
        scheduler = _scheduler(openvino_genai, work)
        with phase("compile"):
            pipeline = openvino_genai.ContinuousBatchingPipeline(
                str(files[0].parent), scheduler, "CPU", _properties(wanted.threads)
            )
        steps = _Steps(pipeline, openvino.Tensor, _greedy(openvino_genai, work.spec.tokens_of_an_answer))
        generation = Generation(steps.first, steps.following, None, steps.cache_bytes, reads_own=True)
        return Contestant(
            **answer_calls(work, generation),
            weights=dict,
            in_force={
                "threads_asked": str(wanted.threads),
                "precision": f"{UNKNOWN}: fp32 was asked of products and cache; the pipeline cannot be asked",
                "weights": "read from the model's file; the pipeline cannot be asked",
                "most_tokens_in_a_step": str(scheduler.max_num_batched_tokens),
                "prefix_caching": "on" if scheduler.enable_prefix_caching else "off",
            },
            no_memory_because="on the CPU OpenVINO reports no statistics of memory",
        )


def _properties(threads: int) -> dict[str, Any]:
    return {
        "INFERENCE_PRECISION_HINT": "f32",
        "KV_CACHE_PRECISION": "f32",
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": 1,
    }


def _scheduler(genai: Any, work: Workload) -> Any:
    """Let a step read all prompts, so that each step gives a token of every one; nothing is left of other prompts."""
    found = genai.SchedulerConfig()
    found.enable_prefix_caching = False
    prompt, _ = (tensor.sized(work.batch) for tensor in work.spec.inputs)
    found.max_num_batched_tokens = max(found.max_num_batched_tokens, prompt[0] * prompt[1])
    found.max_num_seqs = max(found.max_num_seqs, work.batch)
    return found


def _greedy(genai: Any, tokens: int) -> Any:
    found = genai.GenerationConfig()
    found.max_new_tokens = tokens
    found.do_sample = False
    found.ignore_eos = True
    found.set_eos_token_id(_ANY_TOKEN)
    return found


class _Steps:
    """The state is a handle for each prompt, from which its tokens are read."""

    def __init__(self, pipeline: Any, tensor: Any, config: Any) -> None:
        self._pipeline, self._tensor, self._config = pipeline, tensor, config
        self._numbers = itertools.count()
        self._running: list[Any] = []

    def first(self, prompts: Tokens) -> tuple[list[int], None, list[Any]]:
        if self._pipeline.has_non_finished_requests():
            self._drop()
        add, tensor = self._pipeline.add_request, self._tensor
        self._running = [add(next(self._numbers), tensor(prompt[None]), self._config) for prompt in prompts]
        return self.following(self._running, None)

    def following(self, handles: list[Any], _tokens: Tokens | None) -> tuple[list[int], None, list[Any]]:
        self._pipeline.step()
        return [_token(handle) for handle in handles], None, handles

    def cache_bytes(self, _handles: list[Any]) -> int:
        return int(self._pipeline.get_metrics().kv_cache_size_in_bytes)

    def _drop(self) -> None:
        """End an answer that was left, whose prompts the next step would go on with."""
        for handle in self._running:
            handle.cancel()
        self._pipeline.step()


def _token(handle: Any) -> int:
    [output] = handle.read().values()
    [token] = output.generated_ids
    return int(token)
