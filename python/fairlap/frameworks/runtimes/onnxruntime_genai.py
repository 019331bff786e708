"""ONNX Runtime GenAI: its own generator over the ONNX file that ONNX Runtime runs too, with the cache in its hands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fairlap.frameworks.adapter_parts.onnx_graph import files_of
from fairlap.frameworks.adapter_parts.own_threads import thread_count
from fairlap.frameworks.contract import Contestant, Framework, Phase, Settings, Unsupported, refuse_what_is_unknown
from fairlap.frameworks.contract_parts.generation import Generation, KeptPrompt, Tokens, answer_calls
from fairlap.models.sources.python_models.generating.genai_config import GENAI_CONFIG
from fairlap.models.workload import Workload


class OnnxRuntimeGenAi(Framework):
    name = "onnxruntime-genai"
    packages = ("onnxruntime-genai==0.18.0",)
    module = "onnxruntime_genai"
    implementation = "onnx"
    options: ClassVar = {KeptPrompt.OPTION: ("kept",)}
    generates = True
    generates_only = "causal language models of your own"
    environment: ClassVar = {"ORT_DISABLE_TELEMETRY": "1"}
    no_precision: ClassVar = dict.fromkeys(
        ("fp16", "bf16", "autocast", "int8", "tf32"), "it computes in the types of the exported file, float32"
    )

    @classmethod
    def files(cls, work: Workload) -> tuple[Path, ...]:
        files = files_of(work)
        return (*files, files[0].with_name(GENAI_CONFIG)) if files else ()

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        files = self.files(work)
        if not work.spec.continuation or not files or not files[-1].is_file():
            raise Unsupported(self.why_only_generates())
        with phase("import"):
            import onnxruntime_genai
        from importlib.metadata import version

        self._version = version(self.name)
        with phase("compile"):
            config = onnxruntime_genai.Config(str(files[-1].parent))
            options = {"intra_op_num_threads": wanted.threads, "inter_op_num_threads": 1}
            config.overlay(json.dumps({"model": {"decoder": {"session_options": options}}}))
            before = thread_count()
            model = onnxruntime_genai.Model(config)
            threads = 1 + thread_count() - before if before else 0  # it cannot be asked, and starts them here
        kept = KeptPrompt() if KeptPrompt.OPTION in wanted.options else None
        steps = _generation(onnxruntime_genai, model, json.loads(files[-1].read_bytes()), kept)
        return Contestant(
            **answer_calls(work, steps),
            weights=dict,
            in_force={
                **({"threads": str(threads)} if threads else {"threads_asked": str(wanted.threads)}),
                "precision": "fp32",
                "weights": "read from the model's file; the session cannot be asked",
                **(KeptPrompt.IN_FORCE if kept else {}),
            },
            no_memory_because="ONNX Runtime's Python interface reports no statistics of its arena",
        )


def _generation(genai: Any, model: Any, config: Any, kept: KeptPrompt | None) -> Generation:
    params = genai.GeneratorParams(model)
    decoder = config["model"]["decoder"]
    caches = [
        decoder["outputs"][f"present_{part}_names"] % layer
        for layer in range(decoder["num_hidden_layers"])
        for part in ("key", "value")
    ]

    def following(generator: Any, tokens: Tokens) -> tuple[list[int], Any, Any]:
        generator.append_tokens(tokens[0].astype(np.int32))  # which runs the step
        logits = generator.get_logits().reshape(1, -1)
        return logits.argmax(axis=1).tolist(), logits, generator

    newest: list[Any] = []

    def first(prompt: Tokens) -> tuple[list[int], Any, Any]:
        if kept is None:
            return following(genai.Generator(model, params), prompt)
        if known := kept.known(prompt):
            newest[0].rewind_to(known)
        else:
            newest[:] = [genai.Generator(model, params)]
        return following(newest[0], prompt[:, known:])

    def cache_bytes(generator: Any) -> int:
        return sum(generator.get_output(name).nbytes for name in caches)

    return Generation(first, following, np.asarray, cache_bytes)
