"""Contestants that hand out no logits: PyTorch with a mistake for each variant, llama.cpp that keeps whole prompts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from fairlap.frameworks.contract import Contestant, Phase, Settings
from fairlap.frameworks.contract_parts.generation import Generation, answer_calls
from fairlap.frameworks.runtimes import llama_cpp
from fairlap.models.workload import Workload
from installed_package import install_frameworks
from spoilt_generation import Spoilt

if TYPE_CHECKING:
    import pytest


class OwnTokens(Spoilt):
    """It reads the tokens that it chose itself."""

    name = "own-tokens"

    def _generating(self, work: Workload, wanted: Settings, model: Any, phase: Phase) -> Contestant:
        found = super()._generating(work, wanted, model, phase)
        steps: Generation = found.bind.__self__.generation  # type: ignore[attr-defined]
        chosen: list[Any] = []

        def kept(step: Any) -> Any:
            chosen[:] = [np.array(step[0])[:, None]]
            return step[0], None, step[2]

        own = Generation(
            lambda prompt: kept(steps.first(prompt)),
            lambda state, _: kept(steps.following(state, chosen[0])),
            None,
            steps.cache_bytes,
            reads_own=True,
        )
        return replace(found, **answer_calls(work, own))


class KeepsPrompts(llama_cpp.LlamaCpp):
    """With the state after each prompt, and the token that it chose then."""

    name = "keeps-prompts"

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        read, known = llama_cpp._Steps.first, dict[bytes, Any]()

        def first(steps: Any, prompts: Any) -> Any:
            if (key := prompts.tobytes()) not in known:
                found = read(steps, prompts)
                known[key] = (found, steps._context.get_state_seq_data(0))
                return found
            found, state = known[key]
            steps._context.set_state_seq_data(state, 0)
            return found

        llama_cpp._Steps.first = first  # type: ignore[method-assign, assignment]
        return super().prepare(work, wanted, phase)


def install_runtimes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"own-tokens": "OwnTokens", "keeps-prompts": "KeepsPrompts"}
    frameworks = {name: f"runtimes_without_logits:{kind}" for name, kind in kinds.items()}
    install_frameworks(folder, monkeypatch, frameworks)
