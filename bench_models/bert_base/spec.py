"""BERT-base under the names of its published PyTorch weights, so that those can be loaded too."""

from __future__ import annotations

from dataclasses import replace

from fairlap.models.spec import TOLERANCES, Constant, Integers, Normal, Spec, Tensor, Tolerance, Uniform, Weight

LAYERS, HEADS, HIDDEN, INTERMEDIATE = 12, 12, 768, 3072
VOCABULARY, POSITIONS, TYPES = 30_522, 512, 2
LENGTH = 128
FREE_SIZES = {"tokens": (1, POSITIONS)}
EPSILON = 1e-12

# Attention to many tokens at once is an average, and makes tokens alike. With all sizes one, after twelve layers they
# differ by a millionth, and it no longer matters what the last ones attend to. Scores that decide for few tokens, and
# layers that add less than there is already, leave the tokens of an item a third of their size apart.
DECISIVE, MODEST = 1.5, 0.5

LAYER_NAMES = tuple(f"encoder.layer.{number}" for number in range(LAYERS))


def macs_per_layer() -> int:
    projections = 4 * LENGTH * HIDDEN * HIDDEN
    attention = 2 * LENGTH * LENGTH * HIDDEN
    feed_forward = 2 * LENGTH * HIDDEN * INTERMEDIATE
    return projections + attention + feed_forward


def macs_per_item() -> int:
    return LAYERS * macs_per_layer() + HIDDEN * HIDDEN


def _table(name: str, rows: int) -> Weight:
    # As narrow as when BERT's training starts: wide enough to show, and narrow enough that an epsilon of 1e-5 does too.
    return Weight(f"embeddings.{name}.weight", (rows, HIDDEN), Normal(0.02))


def _linear(name: str, inward: int, outward: int, size: float = 1.0) -> tuple[Weight, Weight]:
    """``size`` is that of what comes out when what goes in has size one."""
    weight = Weight(f"{name}.weight", (outward, inward), Normal(size * inward**-0.5))
    return weight, Weight(f"{name}.bias", (outward,), Normal(0.1))


def _norm(name: str) -> tuple[Weight, Weight]:
    name = f"{name}.LayerNorm"
    # Twenty-five of them multiply: from 0.5 to 1.5, some features would dwarf the others.
    return Weight(f"{name}.weight", (HIDDEN,), Uniform(0.75, 1.25)), Weight(f"{name}.bias", (HIDDEN,), Normal(0.1))


def _layer(name: str) -> tuple[Weight, ...]:
    attention = f"{name}.attention"
    return (
        *_linear(f"{attention}.self.query", HIDDEN, HIDDEN, size=DECISIVE),
        # A key's bias adds the same to all scores of a query, so no answer shows it; it is there to be added.
        *_linear(f"{attention}.self.key", HIDDEN, HIDDEN, size=DECISIVE),
        *_linear(f"{attention}.self.value", HIDDEN, HIDDEN),
        *_linear(f"{attention}.output.dense", HIDDEN, HIDDEN, size=MODEST),
        *_norm(f"{attention}.output"),
        *_linear(f"{name}.intermediate.dense", HIDDEN, INTERMEDIATE),
        *_linear(f"{name}.output.dense", INTERMEDIATE, HIDDEN, size=MODEST),
        *_norm(f"{name}.output"),
    )


TABLES = (
    _table("word_embeddings", VOCABULARY),
    _table("position_embeddings", POSITIONS),
    _table("token_type_embeddings", TYPES),
)
TABLE_NAMES = tuple(table.name for table in TABLES)

# Twelve layers of bfloat16 leave an error of 0.16 in the worst of the elements near zero (TensorFlow, which rounds
# after every operation). The cosine is held tighter in return: honest work stays above 0.9997, an answer that takes no
# notice of the mask comes to 0.984, and another item's to 0.91.
_BF16 = Tolerance(cosine=0.9995, absolute=0.25, relative=1e-1)


def _inputs(tokens: int) -> tuple[Tensor, ...]:
    return (
        Tensor("input_ids", ("batch", tokens), Integers(0, VOCABULARY), "int32"),
        Tensor("token_type_ids", ("batch", tokens), Integers(0, TYPES), "int32"),
        # About half of the tokens, anywhere, so that an implementation that ignores the mask is found.
        Tensor("attention_mask", ("batch", tokens), Integers(0, 2), "int32"),
    )


def _outputs(tokens: int) -> tuple[Tensor, ...]:
    return (
        # First, since the loss is of the first output: the pooler is behind all other layers and so learns with them.
        Tensor("pooled", ("batch", HIDDEN), Constant(0.0)),
        Tensor("last_hidden_state", ("batch", tokens, HIDDEN), Constant(0.0)),
    )


SPEC = Spec(
    name="bert_base",
    task="text encoding",
    inputs=_inputs(LENGTH),
    outputs=_outputs(LENGTH),
    weights=(
        *TABLES,
        *_norm("embeddings"),
        *(weight for name in LAYER_NAMES for weight in _layer(name)),
        *_linear("pooler.dense", HIDDEN, HIDDEN),
    ),
    parameters=109_482_240,
    gmacs_per_item=11.17,
    published="Hugging Face, BertModel of bert-base-uncased (num_parameters); GMACs by arithmetic, for 128 tokens",
    tolerances={**TOLERANCES, "bf16": _BF16},
)


def with_sizes(tokens: int) -> Spec:
    return replace(SPEC, inputs=_inputs(tokens), outputs=_outputs(tokens), gmacs_per_item=None)
