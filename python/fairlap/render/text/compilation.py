"""What compiling did, in words, for the terminal and the report."""

from __future__ import annotations

from fairlap import quantity_text
from fairlap.race.around_blocks.compilation_result import AtBatch, CompilationResult

_NS_PER_S = 1e9


def counts_text(found: CompilationResult) -> str:
    """``2 graphs, 1 graph break; 6 operators became 5 kernels (FX operators; ...)``, or why there are no counts."""
    described = found.described
    parts = []
    if described.graphs is not None:
        breaks = described.graph_breaks
        broken = "" if breaks is None else f", {quantity_text.count(breaks, 'graph break') if breaks else 'no breaks'}"
        parts.append(f"{quantity_text.count(described.graphs, 'graph')}{broken}")
    if described.operators is not None:
        operators = described.operators
        before, after = (
            quantity_text.count(count, what)
            for count, what in ((operators.before, "operator"), (operators.after, "kernel"))
        )
        parts.append(f"{before} became {after} ({operators.counted})")
    elif described.graphs is not None and (why := described.absent.get("operators")):
        parts.append(f"no count of operators: {why}")
    if not parts and (why := described.absent.get("graphs")):
        parts.append(why)
    if found.message:
        parts.append(f"{found.message} [{found.code}]")
    return "; ".join(parts)


def heading(at: AtBatch) -> str:
    """``batch 7``, ``tokens=64`` or ``float64``."""
    return f"batch {at.text}" if at.inputs is None else at.text


def batch_text(at: AtBatch) -> str:
    """Describe what happened on these inputs: compiled again or not, how long it stalled, and a call's cost then."""
    resized = at.resized
    if resized.stall_s is None or resized.call_s is None:
        return resized.why
    stall = quantity_text.duration(resized.stall_s * _NS_PER_S)
    call = f"then {quantity_text.duration(resized.call_s * _NS_PER_S)} a call"
    if at.prepared_call_s is not None:
        call += f" ({quantity_text.duration(at.prepared_call_s * _NS_PER_S)} if prepared for it)"
    return f"{what_happened(at)}, stalled {stall}, {call}"


def what_happened(at: AtBatch) -> str:
    resized = at.resized
    if resized.built_s is not None:
        return "built again"
    if resized.compiled is None:
        return "compiled nothing"
    if not resized.compiled:
        return "not compiled again"
    return f"compiled again ({quantity_text.count(resized.compiled, 'graph')})"
