"""A captured graph writes the same memory at every replay, also what the call had freed by the time it returned.

The allocators of PyTorch and CuPy give such memory to the next who asks, since the capture is not theirs. For as long
as a graph is captured and replayed, this thread therefore allocates from a pool of its own. Other threads that take
part in the call, as in PyTorch's backward pass, do not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any


@contextmanager
def kept_for_replays(device: int | None) -> Iterator[None]:
    """Frameworks that are not imported allocate nothing, and none is imported for this."""
    with ExitStack() as pools:
        if (torch := sys.modules.get("torch")) is not None and _has_pools(torch):
            pools.enter_context(torch.cuda.use_mem_pool(torch.cuda.MemPool(), device=device))
        if (cupy := sys.modules.get("cupy")) is not None:
            pools.enter_context(cupy.cuda.using_allocator(cupy.cuda.MemoryPool().malloc))
        yield


def _has_pools(torch: Any) -> bool:
    """From PyTorch 2.5 on, where it uses CUDA at all."""
    return torch.cuda.is_initialized() and hasattr(torch.cuda, "use_mem_pool")
