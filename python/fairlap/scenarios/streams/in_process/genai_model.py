"""ONNX Runtime GenAI over a folder that it reads itself, with its own tokenizer and its own cache."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime_genai

from fairlap.scenarios.streams.in_process.token_model import TokenModel


class GenAiModel(TokenModel):
    def __init__(self, model: Any, ends: frozenset[int]) -> None:
        self._model, self.ends = model, ends
        self._tokenizer = onnxruntime_genai.Tokenizer(model)

    @classmethod
    def load(cls, folder: str, device: str) -> GenAiModel:
        if device != "cpu":
            raise ValueError("onnxruntime-genai runs on the device that its folder names; leave device= out")
        named = json.loads((Path(folder) / "genai_config.json").read_bytes())["model"].get("eos_token_id", [])
        return cls(onnxruntime_genai.Model(folder), frozenset(named if isinstance(named, list) else [named]))

    def tokens_of(self, prompt: str | list[dict[str, Any]]) -> list[int]:
        if not isinstance(prompt, str):
            prompt = self._tokenizer.apply_chat_template(json.dumps(prompt), add_generation_prompt=True)
        return [int(each) for each in self._tokenizer.encode(prompt)]

    def following(self, prompt: list[int], most: int) -> Iterator[int]:
        """Choose by logits, since its own search does not go on after the end of a text."""
        generator = onnxruntime_genai.Generator(self._model, onnxruntime_genai.GeneratorParams(self._model))
        read = np.array(prompt, np.int32)
        for _ in range(most):
            generator.append_tokens(read)  # which runs the step
            token = int(generator.get_logits().reshape(-1).argmax())
            yield token
            read = np.array([token], np.int32)

    def decoder(self) -> Callable[[int], str]:
        stream = self._tokenizer.create_stream()
        return lambda token: str(stream.decode(token))
