"""Prompts that begin alike: a runtime that keeps their beginning is quicker to the first token, and to no other."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from command_line import refusal
from fairlap.frameworks.contract import Contestant, Settings
from fairlap.frameworks.registry import framework_named
from fairlap.models.array_files import safetensors
from fairlap.models.checks.answer_check import output_errors
from fairlap.models.sources.bundle import inputs_file, reference_file
from framework_python import skip_unless_available
from machine_marks import needs, needs_proc
from onnx_files import opened
from own_generators import generating_folder, generating_source, workload

needs("torch", "transformers", "onnxscript")

pytestmark = [needs_proc, pytest.mark.slow, pytest.mark.usefixtures("own_cache", "offline")]

CONTESTANT = "onnxruntime-genai"


def test_all_prompts_have_the_beginning_and_each_its_own_end(tmp_path: Path) -> None:
    source = generating_source(generating_folder(tmp_path / "m", "gpt2"), (9, 4), batch=2, shared=6)
    folder, bundle = opened(source, tmp_path)
    assert "generate=6+3:4" in bundle.source.name
    sets = [safetensors.read(inputs_file(folder, which))["input_ids"] for which in ("inputs", "changed", "unseen-0")]
    rows = np.concatenate(sets)
    assert (rows[:, :6] == rows[0, :6]).all()
    assert len(np.unique(rows[:, 6:], axis=0)) == len(rows)


def prepared(folder: Path, options: dict[str, str]) -> Contestant:
    return framework_named(CONTESTANT)().prepare(
        workload(folder), Settings(1, options=options), lambda _: nullcontext()
    )


def shortest_first_s(contestant: Contestant, prompts: list[np.ndarray]) -> float:
    """Read the prompts in turn, and return the shortest time to a first token; the first two begin without a cache."""
    generation = contestant.bind.__self__.generation  # type: ignore[attr-defined]
    found = []
    for prompt in prompts * 4:
        began_s = time.perf_counter()
        generation.first(prompt)
        found.append(time.perf_counter() - began_s)
    return min(found[2:])


def test_a_kept_beginning_shortens_the_time_to_the_first_token_of_right_answers(tmp_path: Path) -> None:
    skip_unless_available(CONTESTANT)
    made = generating_folder(tmp_path / "m", "llama", max_position_embeddings=512)
    folder, bundle = opened(generating_source(made, (448, 4), batch=None, shared=440), tmp_path)
    plain, kept = prepared(folder, {}), prepared(folder, {"prefix": "kept"})
    assert ("prefix" in kept.in_force, "prefix" in plain.in_force) == (True, False)
    sets = ("inputs", "changed", "unseen-0", "inputs")
    for which in sets:
        given, reference = (safetensors.read(file(folder, which)) for file in (inputs_file, reference_file))
        found = kept.outputs(kept.bind(given)())
        for name, allowed in bundle.tolerances["fp32"].items():
            assert output_errors(name, found[name], reference[name], allowed).right
    prompts = [safetensors.read(inputs_file(folder, which))["input_ids"] for which in sets[:2]]
    assert shortest_first_s(kept, prompts) < 0.7 * shortest_first_s(plain, prompts)


def test_under_load_prompts_do_not_begin_alike(tmp_path: Path) -> None:
    folder = generating_folder(tmp_path / "m", "gpt2")
    refused = refusal("load", f"hf:{folder}", "--generate", "4+4:4", "--on", "torch", "--p99", "1s", "--no-store")
    assert refused.code == "E_LOAD"
