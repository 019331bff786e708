"""What ``torch.compile`` did: graphs and breaks by Dynamo's counters, kernels by the code that Inductor wrote."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairlap.errors import shortened
from fairlap.frameworks.contract_parts.compilation import Compilation, Operators

_MOST_REASON = 300
_BETWEEN = re.compile(r"(?P<quotes>'''|\"\"\").*?(?P=quotes)", re.DOTALL)  # sources of kernels
_CODE_OF_CALLS = re.compile(
    r"^\s+def (?:call|partition_\d+)\(.*?(?=^\s*(?:def |runner = )|\Z)", re.DOTALL | re.MULTILINE
)
_KERNEL = re.compile(
    r"^\s+(?:\w+ = )?(?:cpp_\w+|triton_\w+\.run|extern_kernels\.\w+|torch\.ops\.[\w.]+|mkldnn[\w.]*|aten\.[\w.]+)\(",
    re.MULTILINE,
)
NOTHING_COMPILED = "it runs operator by operator and compiles nothing"


def compilation_of(bind: Callable[..., Callable[[], Any]], *, compiled: bool, trains: bool) -> Compilation:
    """``bind`` takes inputs, and the types that it makes of some of them."""
    if not compiled:
        return Compilation(
            bind=bind, bind_as=bind, absent=dict.fromkeys(("graphs", "breaks", "operators"), NOTHING_COMPILED)
        )
    why = "Dynamo captures the forward pass alone, and Inductor's kernels are those of both passes" if trains else ""
    return Compilation(
        graphs=_graphs,
        breaks=_breaks,
        operators=None if trains else _operators,
        bind=bind,
        bind_as=bind,
        reasons=_recompile_reasons,
        absent={"operators": why} if why else {},
    )


def _graphs() -> int:
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


def _breaks() -> list[str]:
    """List each line of a program at which Dynamo stopped capturing, with its reason.

    Its own counter has a break in a called function twice: once for the call, which could not be inlined, and once for
    the function.
    """
    from torch._dynamo.utils import graph_break_reasons

    places: dict[tuple[str, int], str] = {}
    for each in graph_break_reasons:
        if each.graph_break and each.user_stack:
            frame = each.user_stack[-1]
            where = f"{Path(frame.filename).name}:{frame.lineno}"
            places.setdefault((frame.filename, frame.lineno), f"{where}: {break_in_short(each.reason)}")
    return list(places.values())


def break_in_short(reason: str) -> str:
    """Its first line and its explanation, without the developers' part."""
    explained = re.search(r"^\s*Explanation: (.+)$", reason, re.MULTILINE)
    first = shortened(reason, _MOST_REASON)
    return f"{first}: {shortened(explained[1], _MOST_REASON)}" if explained else first


@contextmanager
def _recompile_reasons() -> Iterator[list[str]]:
    from torch._dynamo.utils import get_compilation_metrics

    found: list[str] = []
    seen = {metrics.compile_id for metrics in get_compilation_metrics()}
    yield found
    for metrics in get_compilation_metrics():
        reason = getattr(metrics, "recompile_reason", None)
        if metrics.compile_id not in seen and reason:
            found.append(shortened(reason.partition(": ")[2] or reason, _MOST_REASON))


def _operators() -> Operators:
    """Of all graphs compiled so far. Inductor's own counters miss kernels that came from its cache."""
    from torch._dynamo.utils import counters
    from torch._inductor.codecache import PyCodeCache

    after = sum(kernels_in(Path(module.__file__).read_text()) for module in PyCodeCache.modules if module.__file__)
    if not after:
        raise ValueError("Inductor's code has none of the calls that are known")
    before = int(counters["stats"]["calls_captured"])
    return Operators(before, after, "FX operators; Inductor's kernels and calls of libraries")


def kernels_in(code: str) -> int:
    """How many kernels and library functions a call of one graph starts, by the Python that Inductor wrote."""
    bare = _BETWEEN.sub("", code)
    return sum(len(_KERNEL.findall(body.group())) for body in _CODE_OF_CALLS.finditer(bare))
