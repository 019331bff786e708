"""Profile one contestant: plain calls first, then calls under its framework's own profiler."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from fairlap.errors import InvalidRequest
from fairlap.frameworks.contract import Contestant, Unsupported
from fairlap.frameworks.contract_parts.profiler import ProfiledCall
from fairlap.models.arrays import Arrays
from fairlap.scenarios.held import Held
from fairlap.scenarios.untimed.profile_messages import Operator, Profile, ProfileCalls, Profiled

_Each = TypeVar("_Each")
_FEWEST_CALLS = 5
_MOST_CALLS = 200
_FIRST_CALLS = 2  # of a profiler: they wait for it to allocate its buffers, and are left out


def serve(held: Held, request: ProfileCalls) -> tuple[Profiled, tuple[()]]:
    contestant = held.contestant
    if held.elsewhere:
        raise Unsupported(f"{held.elsewhere}, and no profiler sees it")
    if contestant.profiler is None:
        mode = f" in mode {held.mode}" * (held.mode != "infer")
        raise Unsupported(f"fairlap reads no profiler of {held.framework.name}{mode}")
    held.begin_to_profile()
    if contestant.training is not None:
        contestant.training.reset()
    return profiled(contestant, held.sets[0], request), ()


def profiled(contestant: Contestant, inputs: Arrays, request: ProfileCalls) -> Profiled:
    from fairlap.engine import time_calls

    profiler = contestant.profiler
    if profiler is None:
        raise InvalidRequest("this contestant has no profiler")
    plain = contestant.bind(inputs)
    measured = time_calls(plain, done=contestant.done, seconds=request.seconds, calls_per_sample=1)
    plain_ns = median(_faster_half(measured.wall_ns.tolist(), key=float))
    calls = min(max(int(1e9 * request.seconds / plain_ns), _FEWEST_CALLS), _MOST_CALLS)
    call = _completing((profiler.bind or contestant.bind)(inputs), contestant.done)
    call()  # of what a profiler had to build for itself, the first call may compile
    trace = Path(request.trace) if request.trace else None
    found = profiler.record(call, calls + _FIRST_CALLS, trace)[_FIRST_CALLS:]
    if not any(each.operators for each in found):
        raise Unsupported(f"{profiler.name} recorded no operator in {len(found)} calls")
    return Profiled(profile_of(profiler.name, found, plain_ns), trace is not None and trace.exists())


def profile_of(profiler: str, calls: Sequence[ProfiledCall], plain_call_ns: float) -> Profile:
    """Take medians over the faster half of the profiled calls.

    Where the process lost its core during a call, that time is charged to whatever operator was running. What fewer
    than half of those calls ran, such as a rare clean-up, is left out.
    """
    profiled_calls = len(calls)
    calls = _faster_half(calls, key=lambda call: call.wall_ns)
    runs: Counter[str] = Counter(name for call in calls for name in call.operators)
    operators = [_operator(name, calls) for name, count in runs.items() if 2 * count >= len(calls)]
    return Profile(
        profiler,
        profiled_calls,
        median(call.wall_ns for call in calls),
        plain_call_ns,
        tuple(sorted(operators, key=lambda operator: (-operator.self_ns, operator.name))),
    )


def _faster_half(found: Sequence[_Each], key: Callable[[_Each], float]) -> list[_Each]:
    return sorted(found, key=key)[: (len(found) + 1) // 2]


def _operator(name: str, calls: Sequence[ProfiledCall]) -> Operator:
    own = [call.operators[name] for call in calls if name in call.operators]
    absent = [0.0] * (len(calls) - len(own))
    flops = [each.flops for each in own if each.flops is not None]
    return Operator(
        name,
        kind_of(name),
        calls=sum(each.calls for each in own) / len(calls),
        self_ns=median([*(each.self_ns for each in own), *absent]),
        flops=median(flops) if flops else None,
    )


def _completing(call: Callable[[], Any], done: Callable[[Any], Any] | None) -> Callable[[], Any]:
    if done is None:
        return call

    def completed() -> Any:
        result = call()
        done(result)
        return result

    return completed


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
    """Find what kind of work an operator does from its name in any framework; empty where the name does not say."""
    words = name.lower().replace("::", " ")
    return next((kind for kind, pattern in _PATTERNS if pattern.search(words)), "")
