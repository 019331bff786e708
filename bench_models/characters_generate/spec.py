"""A prompt of 32 characters, and an answer of 16."""

from __future__ import annotations

from fairlap.bench_models.characters.spec import SIZE
from fairlap.bench_models.gpt2.generation import Answer, spec_of

IMPLEMENTED_IN = "fairlap.bench_models.gpt2"
DOES = "answer"
ANSWER = Answer(SIZE, prompt=32, tokens=16)
SPEC = spec_of("characters_generate", ANSWER, 160_320, "the model `characters` (parameters)")
