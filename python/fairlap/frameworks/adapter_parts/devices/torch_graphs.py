"""Calls of PyTorch as CUDA graphs: captured once for the inputs that they are bound to, and replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlap.frameworks.contract_parts.compilation import NO_TYPES, Types
from fairlap.models.arrays import Arrays

GRAPH = "graph"
_WARM_UP_CALLS = 3  # on another stream before a capture, as PyTorch's notes on CUDA graphs ask for


class GraphedCalls:
    """Captures what ``bind`` gives. All graphs share a pool of memory, as calls without a graph share the allocator's.

    A replay writes to the tensors that its capture returned. None of them outlives the next replay, and that is all
    that graphs which share a pool must not expect.
    """

    def __init__(self, bind: Callable[[Arrays, Types], Callable[[], Any]]) -> None:
        self._bind = bind
        self._pool: Any = None

    def __call__(self, inputs: Arrays, types: Types = NO_TYPES) -> Callable[[], Any]:
        import torch

        bound, side = self._bind(inputs, types), torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM_UP_CALLS):
                bound()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=side):
            result = bound()
        self._pool = graph.pool()

        def replay(_inputs_of: object = bound) -> Any:  # the graph has the addresses of its inputs, which must live on
            graph.replay()
            return result

        return replay
