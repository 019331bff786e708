"""Weights of an LSTM as PyTorch takes them, put in its order once, as in a module of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class _Ordered:
    of: tuple[Any, ...]  # the other tensors that they are made from
    versions: tuple[int, ...]
    parts: Sequence[Any]


class GatesOfLstm:
    """Keeps what it has made of a tensor as long as that lives and is not written to.

    What has a gradient, or is traced by a compiler, is made each time.
    """

    def __init__(self, torch: Any) -> None:
        from torch.utils.weak import WeakIdKeyDictionary

        self._torch, self._kept = torch, WeakIdKeyDictionary()

    def of(self, by_input: Any, by_state: Any, bias: Any) -> Sequence[Any]:
        tensors = [each for each in (by_input, by_state, bias) if each is not None]
        if not self._may_keep(tensors):
            return self._ordered(by_input, by_state, bias)
        versions = tuple(0 if each.is_inference() else each._version for each in tensors)
        kept: _Ordered | None = self._kept.get(by_input)
        if (
            kept is None
            or kept.versions != versions
            or any(a is not b for a, b in zip(kept.of, tensors[1:], strict=False))
        ):
            kept = _Ordered(tuple(tensors[1:]), versions, self._ordered(by_input, by_state, bias))
            self._kept[by_input] = kept
        return kept.parts

    def _may_keep(self, tensors: Sequence[Any]) -> bool:
        if self._torch.compiler.is_compiling() or any(
            type(each) not in (self._torch.Tensor, self._torch.nn.Parameter) for each in tensors
        ):
            return False
        return not (self._torch.is_grad_enabled() and any(each.requires_grad for each in tensors))

    def _ordered(self, by_input: Any, by_state: Any, bias: Any) -> Sequence[Any]:
        """PyTorch has the output gate last, and ONNX has it second."""
        size = by_state.shape[2]

        def ordered(array: Any) -> Any:
            into, out, keep, new = array.split(size)
            return self._torch.cat((into, keep, new, out))

        parts: list[Any] = []
        for at in range(by_state.shape[0]):
            biases = () if bias is None else bias[at].split(4 * size)
            parts += [ordered(each) for each in (by_input[at], by_state[at], *biases)]
        return parts
