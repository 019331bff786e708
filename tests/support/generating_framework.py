"""A framework that answers token by token in NumPy, in known times. Its variants go wrong on purpose, one way each."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from fairlap.bench_models.characters.spec import SIZE
from fairlap.bench_models.gpt2.reference import extend, nothing_read
from fairlap.bench_models.gpt2.weights import cache_names
from fairlap.frameworks.contract import Contestant, Phase, Settings, refuse_what_is_unknown
from fairlap.frameworks.contract_parts.generation import Generation, answer_calls, bytes_of
from fairlap.models.workload import Workload
from installed_package import install_frameworks
from numpy_framework import NumpyFramework, in_force

if TYPE_CHECKING:
    import pytest

FIRST_S, EACH_S = 0.01, 0.0025
_WRONG_STEP = 5


class Generating(NumpyFramework):
    name = "generating"
    generates = True
    variants: ClassVar = (
        *("", "wrong-step", "no-cache", "kept-cache", "kept-prompt", "wrong-token", "promised-token"),
        *("alone", "wrong-step-alone", "wrong-token-alone", "kept-prompt-alone"),  # they hand out no logits
    )

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        variant = wanted.variant.removesuffix("alone").removesuffix("-")
        logits_of: Any = None if wanted.variant.endswith("alone") else (lambda logits: logits)
        names = cache_names(SIZE)
        kept: list[Any] = []
        read: dict[bytes, Any] = {}

        def step(ids: Any, past: list[Any], number: int, until_s: float) -> tuple[Any, Any, Any]:
            given = nothing_read(SIZE, ids) if variant == "no-cache" else past
            found = extend(work.weights, SIZE, ids, given)
            caches = [found[name] for name in names]
            logits = np.asarray(found["logits"], np.float32)
            if variant == "wrong-step" and number == _WRONG_STEP:
                logits = np.roll(logits, 1, axis=1)
            chosen: Any = logits.argmax(axis=1)
            if variant == "wrong-token":
                chosen = (chosen + 1) % SIZE.vocabulary
            if variant != "promised-token":
                chosen = chosen.tolist()
            time.sleep(max(until_s - time.perf_counter(), 0))
            return chosen, logits, (list(zip(caches[::2], caches[1::2], strict=True)), number + 1)

        def first(prompt: Any) -> tuple[Any, Any, Any]:
            until_s = time.perf_counter() + FIRST_S
            if variant == "kept-prompt":
                known = prompt.tobytes()
                read[known] = read.get(known) or step(prompt, nothing_read(SIZE, prompt), 0, until_s)
                return read[known]  # type: ignore[no-any-return]
            found = step(prompt, nothing_read(SIZE, prompt), 0, until_s)
            if variant != "kept-cache":
                return found
            if not kept:
                kept.append(found[2])
            return found[0], found[1], kept[0]

        def following(state: Any, tokens: Any) -> tuple[Any, Any, Any]:
            return step(tokens, state[0], state[1], time.perf_counter() + EACH_S)

        return Contestant(
            **answer_calls(work, Generation(first, following, logits_of, lambda state: bytes_of(state[0]))),
            weights=lambda: dict(work.weights),
            in_force=in_force(work, wanted),
        )


def install_generating(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_frameworks(folder, monkeypatch, {"generating": "generating_framework:Generating"})
