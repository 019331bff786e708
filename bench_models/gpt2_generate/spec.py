"""A prompt of 128 tokens, and an answer of 32."""

from __future__ import annotations

from fairlap.bench_models.gpt2.generation import Answer, spec_of
from fairlap.bench_models.gpt2.weights import SMALL

IMPLEMENTED_IN = "fairlap.bench_models.gpt2"
DOES, SIZE = "answer", SMALL
ANSWER = Answer(SIZE, prompt=128, tokens=32)
SPEC = spec_of("gpt2_generate", ANSWER, 124_439_808, "OpenAI, gpt-2 124M (parameters)")
