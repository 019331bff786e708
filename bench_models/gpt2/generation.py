"""What models that answer with a GPT-2 share: a prompt goes in, and tokens after it through a cache of one entry each.

The tokens are given, as the inputs are, so that every step has one right answer. The last one that is chosen does not
go in again.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlap.bench_models.gpt2.weights import CONTINUATION, GPT2_TOLERANCES, Size, weights_of
from fairlap.models.spec import Constant, Integers, Spec, Tensor
from fairlap.request.work import Precision

_PRECISIONS: tuple[Precision, ...] = ("fp32", "tf32", "fp16", "bf16", "autocast")


@dataclass(frozen=True)
class Answer:
    """Its size, in tokens of one item."""

    size: Size
    prompt: int
    tokens: int

    @property
    def positions(self) -> int:
        """That the cache has in the end."""
        return self.prompt + self.tokens - 1

    def multiply_accumulates(self) -> int:
        """Count the multiply-accumulates of an answer.

        They are, of a layer, 12 width² for each token and 2 width for each pair of positions, of which the prompt
        computes all; and the logits of each step.
        """
        size, later = self.size, range(self.prompt + 1, self.positions + 1)
        products = 12 * size.layers * size.width**2 * self.positions
        pairs = 2 * size.layers * size.width * (self.prompt**2 + sum(later))
        return products + pairs + size.width * size.vocabulary * self.tokens


def spec_of(name: str, answer: Answer, parameters: int, published: str, default_batch: int = 1) -> Spec:
    size, positions = answer.size, answer.tokens
    ids = Integers(0, size.vocabulary)
    return Spec(
        name=name,
        task="text generation",
        inputs=(
            Tensor("input_ids", ("batch", answer.prompt), ids, "int32"),
            Tensor(CONTINUATION, ("batch", answer.tokens - 1), ids, "int32"),
        ),
        outputs=(
            Tensor("logits", ("batch", positions, size.vocabulary), Constant(0.0)),
            Tensor("chosen_logits", ("batch", positions), Constant(0.0)),
        ),
        weights=weights_of(size),
        parameters=parameters,
        gmacs_per_item=answer.multiply_accumulates() / 1e9,
        published=f"{published}; arithmetic: {answer.prompt} tokens read at once and {answer.tokens - 1} one by one, "
        "12 width² products a layer for each, 2 width for each pair of positions, and the logits of each step",
        modes=("infer",),
        precisions=_PRECISIONS,
        tolerances=GPT2_TOLERANCES,
        default_batch=default_batch,
        continuation=CONTINUATION,
        # Every step reads all of them again, but for the positions: caches hold them only if the model is small.
        read_weights=answer.tokens * (parameters - size.context * size.width),
    )
