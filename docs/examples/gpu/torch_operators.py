"""Operators of PyTorch: ``fairlap time torch_operators:by_addmm torch_operators:by_two_calls --device cuda``."""

import torch

a, b, c = (torch.rand(1024, 1024, device="cuda") for _ in range(3))


def by_addmm():
    torch.ops.aten.addmm(c, a, b)


def by_two_calls():
    torch.ops.aten.add(torch.ops.aten.mm(a, b), c)


side = torch.cuda.Stream()


def on_side_stream():
    """``--graph`` captures it: the default stream cannot be captured. Add ``--stream torch_operators:side``."""
    with torch.cuda.stream(side):
        torch.ops.aten.addmm(c, a, b)
