"""``fairlap time triton_kernel:add --device cuda``: a Triton kernel. The first call compiles it and is not timed."""

import torch
import triton
import triton.language as tl

SIZE, BLOCK = 1 << 22, 1024


@triton.jit
def add_kernel(x, y, out, size, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < size
    tl.store(out + at, tl.load(x + at, inside) + tl.load(y + at, inside), inside)


x, y, out = (torch.rand(SIZE, device="cuda") for _ in range(3))


def add():
    add_kernel[(triton.cdiv(SIZE, BLOCK),)](x, y, out, SIZE, block=BLOCK)


def add_by_torch():
    torch.add(x, y, out=out)
