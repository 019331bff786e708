"""What kind of work an operator does, from its name in any framework."""

from __future__ import annotations

import re
from functools import cache

_KINDS = (  # the first that fits: a fused convolution is a convolution
    ("dispatch", "dynamo|aotdispatcher|compiledfunction|torch-compiled region"),
    ("fused", "fusion|fused_computation|cpp_fused|^triton_"),
    ("attention", "attention|sdpa|flash"),
    ("conversion", "quantize"),
    ("convolution", "conv(?!ert)"),
    ("matmul", r"matmul|gemm|gemv|addmm|\bb?mm\b|_mm\b|baddbmm|linear|fullyconnected|einsum|dense|\bdot\b|dot_general"),
    ("normalisation", r"norm|\bmvn\b"),
    ("pooling", "pool|select_and_scatter"),
    ("optimizer", "optimizer|adam|sgd"),
    ("fused", "fus|subgraph|compiledfxgraph"),
    ("softmax", "softmax"),
    ("random", "random|rng|dropout|bernoulli"),
    ("indexing", r"gather|scatter|embedding|index|slice|lookup|one_?hot|take|aten select\b"),
    ("reduction", r"reduce|\bsum\b|mean|argmax|argmin|\bmax\b|\bmin\b|cumsum|topk|sort|crossentropy|nll_loss"),
    (
        "copy",
        "copy|readvariable|transpose|permute|reorder|reshape|view|expand|concat|\\bcat\\b|split|cast|convert|contiguous|clone|"
        "\\bto\\b|pad|memcpy|memset|as_strided|\\bt\\b|squeeze|flatten|bitcast|identity|empty|zeros|fill",
    ),
    (
        "elementwise",
        "add|sub|mul|div|relu|gelu|sigmoid|tanh|exp|log|sqrt|erf|pow|clamp|maximum|minimum|neg|abs|where|select|silu|"
        "eltwise|square|bias|compare|threshold|swish|lerp|math",
    ),
)
_PATTERNS = tuple((kind, re.compile(pattern)) for kind, pattern in _KINDS)


@cache
def kind_of(name: str) -> str:
    """Empty where the name does not say."""
    words = name.lower().replace("::", " ")
    return next((kind for kind, pattern in _PATTERNS if pattern.search(words)), "")
