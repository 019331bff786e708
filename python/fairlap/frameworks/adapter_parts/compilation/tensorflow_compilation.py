"""What ``tf.function`` did: its traces, and what became of a trace's operations in TensorFlow's optimizer or in XLA."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from fairlap.frameworks.adapter_parts.compilation.hlo_text import kernels_in
from fairlap.frameworks.contract_parts.compilation import Compilation, Operators

_NO_WORK = frozenset(
    ("Placeholder", "Const", "Identity", "IdentityN", "NoOp", "ReadVariableOp", "StopGradient", "_Arg", "_Retval")
)
_WITHOUT = "without inputs, constants and reads of variables"


def compilation_of(
    function: Any,
    variant: str,
    again: Callable[[], Any],
    inputs: Callable[[], Any],
    bind: Callable[..., Callable[[], Any]],
) -> Compilation:
    """Observe how TensorFlow compiled the contestant.

    ``again`` makes the same function without traces; ``function`` is None where the contestant runs eagerly. ``bind``
    takes inputs, and the types that it makes of some of them.
    """
    if function is None:
        why = "it runs operation by operation and traces nothing"
        return Compilation(bind=bind, bind_as=bind, absent=dict.fromkeys(("graphs", "breaks", "operators"), why))
    counted = _after_xla if variant == "xla" else _after_optimizer
    return Compilation(
        graphs=lambda: int(function.experimental_get_tracing_count()),
        operators=partial(counted, again, inputs),
        bind=bind,
        bind_as=bind,
        absent={"breaks": "tf.function traces a function whole or raises an error"},
    )


def _after_xla(again: Callable[[], Any], inputs: Callable[[], Any]) -> Operators:
    function, tensors = again(), inputs()
    before = _operations(each.type for each in function.get_concrete_function(tensors).graph.get_operations())
    after = kernels_in(function.experimental_get_compiler_ir(tensors)(stage="optimized_hlo"))
    return Operators(before, after, f"operations of the trace {_WITHOUT}; instructions of XLA's entry")


def _after_optimizer(again: Callable[[], Any], inputs: Callable[[], Any]) -> Operators:
    """Count from the metadata of the first call of a trace, which alone has the graph that runs."""
    from tensorflow.python.eager import context  # nothing public asks for the metadata of a function's call

    tensors = inputs()
    concrete = again().get_concrete_function(tensors)
    here = context.context()
    here.enable_run_metadata()
    try:
        concrete(tensors)
        graphs = here.export_run_metadata().partition_graphs
    finally:
        here.disable_run_metadata()
    before = _operations(each.type for each in concrete.graph.get_operations())
    after = _operations(node.op for graph in graphs for node in graph.node)
    if not after:
        raise ValueError("TensorFlow shows no graph of the call")
    return Operators(before, after, f"operations of the trace, and of the optimized graph, {_WITHOUT}")


def _operations(kinds: Iterable[str]) -> int:
    return sum(kind not in _NO_WORK for kind in kinds)
