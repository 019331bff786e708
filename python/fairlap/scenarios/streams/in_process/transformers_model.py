"""A causal language model of transformers, step by step through its own cache, as in races of generation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import transformers
from tokenizers.decoders import DecodeStream

from fairlap.models.sources.python_models.generating.causal_steps import CausalSteps
from fairlap.scenarios.streams.in_process.token_model import TokenModel

_OF_FOLDER = {"local_files_only": True, "trust_remote_code": False}


class TransformersModel(TokenModel):
    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model, self._tokenizer = model, tokenizer
        self._steps = CausalSteps(model, 0)
        ends = model.generation_config.eos_token_id
        self.ends = frozenset([] if ends is None else ends if isinstance(ends, list) else [ends])

    @classmethod
    def load(cls, folder: str, device: str) -> TransformersModel:
        """Read weights from safetensors alone, in their own precision; no code of the folder runs."""
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **_OF_FOLDER)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype="auto", use_safetensors=True, **_OF_FOLDER
        )
        return cls(model.to(device).eval(), tokenizer)

    def tokens_of(self, prompt: str | list[dict[str, Any]]) -> list[int]:
        if isinstance(prompt, str):
            return list(self._tokenizer(prompt)["input_ids"])
        found = self._tokenizer.apply_chat_template(prompt, add_generation_prompt=True, return_dict=True)
        return list(found["input_ids"])

    def following(self, prompt: list[int], most: int) -> Iterator[int]:
        with torch.inference_mode():
            chosen, _, state = self._steps.first(torch.tensor([prompt], device=self._model.device))
            yield int(chosen)
            for _ in range(most - 1):
                chosen, _, state = self._steps.step(chosen[:, None], state)
                yield int(chosen)

    def decoder(self) -> Callable[[int], str]:
        stream = DecodeStream([], skip_special_tokens=True)
        tokenizer = self._tokenizer.backend_tokenizer
        return lambda token: stream.step(tokenizer, token) or ""
