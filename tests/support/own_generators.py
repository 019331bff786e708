"""Contestants on a causal language model that was opened, as a race prepares them: their answers, and greedy ones.

    python tests/support/own_generators.py FOLDER OUT PRECISION CONTESTANT...

leaves a file for each contestant in OUT: its answer to the drawn tokens, the tokens that it chooses when it is handed
its own, and its answer to those.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from fairlap.frameworks.contract import Settings
from fairlap.frameworks.contract_parts.generation import Generation
from fairlap.frameworks.registry import framework_named
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays
from fairlap.models.sources.bundle import bundle_in, inputs_file, weights_file
from fairlap.models.workload import Workload
from fairlap.request.fields.source import Source
from fairlap.request.names import contestant_named
from fairlap.request.work import Precision
from transformers_folders import folder_of

# With smaller weights attention hardly shows in the logits.
SHARP = {"initializer_range": 0.4, "init_std": 0.4, "initializer_factor": 1.5}
GREEDY, OF_GREEDY = "greedy", "of greedy/"


def generating_folder(path: Path, name: str, **changes: Any) -> Path:
    return folder_of(path, name, weights=True, **{**SHARP, **changes})


def generated_by_transformers(model: Any, prompt: Any, tokens: int) -> Any:
    """Let transformers' own ``generate`` answer, with the logits of each step."""
    import torch

    return model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),  # else it leaves out tokens that are drawn and stand for no text
        forced_eos_token_id=None,
        do_sample=False,
        max_new_tokens=tokens,
        eos_token_id=-1,
        pad_token_id=0,
        output_logits=True,
        return_dict_in_generate=True,
    )


def generating_source(path: Path, generate: tuple[int, int], batch: int | None = 2, **bindings: Any) -> Source:
    return Source(f"hf:{path.name}", f"hf:{path}", str(path.parent), generate=generate, batch=batch, **bindings)


def answers_of(folder: Path, out: Path, *contestants: str, precision: Precision = "fp32") -> dict[str, Arrays]:
    """By contestant, from one process for each."""
    for each in contestants:
        name = contestant_named(each)
        variables = framework_named(name.framework).environment_for(Settings(1, name.variant))
        called: list[str | Path] = [sys.executable, __file__, folder, out, precision, each]
        done = subprocess.run(called, env={**os.environ, **variables}, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr[-3000:])
    return {each: safetensors.read(_file(out, each)) for each in contestants}


def workload(folder: Path, precision: Precision = "fp32") -> Workload:
    bundle = bundle_in(folder)
    weights, inputs = safetensors.read(weights_file(folder)), safetensors.read(inputs_file(folder, "inputs"))
    return Workload(bundle.spec, str(folder), bundle.batch, "infer", precision, weights, inputs)


def _file(out: Path, contestant: str) -> Path:
    return out / f"{contestant.replace(':', '-')}.safetensors"


def _greedy(generation: Generation, prompt: Any, count: int) -> Any:
    """Hand each step the tokens that the one before chose."""
    chosen, _, state = generation.first(prompt)
    found = [chosen]
    for _ in range(count - 1):
        chosen, _, state = generation.following(state, np.array(chosen, prompt.dtype)[:, None])
        found.append(chosen)
    return np.array(found, prompt.dtype).T


def main(folder: Path, out: Path, precision: Precision, contestants: list[str]) -> None:
    for text in contestants:
        name, work = contestant_named(text), workload(folder, precision)
        adapter = framework_named(name.framework)()  # which holds the modes of the process
        made = adapter.prepare(work, Settings(1, name.variant), lambda _: nullcontext())
        prompt, continuation = work.inputs["input_ids"], work.inputs["continuation"]
        answer = made.outputs(made.bind(work.inputs)())
        generation = made.bind.__self__.generation  # type: ignore[attr-defined]
        greedy = _greedy(generation, prompt, continuation.shape[1] + 1)
        own = {"input_ids": prompt, "continuation": np.ascontiguousarray(greedy[:, :-1])}
        of_greedy = made.outputs(made.bind(own)())
        again = made.outputs(made.bind(work.inputs)())
        for key, array in answer.items():
            np.testing.assert_allclose(again[key], array, rtol=1e-3, atol=1e-5)  # nothing is left of other answers
        arrays = {**answer, GREEDY: greedy, **{OF_GREEDY + key: array for key, array in of_greedy.items()}}
        safetensors.write(_file(out, text), arrays)


if __name__ == "__main__":
    where, into, asked, *rest = sys.argv[1:]
    main(Path(where), Path(into), asked, rest)  # type: ignore[arg-type]
