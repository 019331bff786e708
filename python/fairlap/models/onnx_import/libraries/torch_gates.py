"""Weights of an LSTM as PyTorch takes them, put in its order once, as in a module of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_KEPT = "_fairlap_gates"


@dataclass(frozen=True)
class _Ordered:
    of: tuple[Any, Any]  # the other tensors that they are made from
    versions: tuple[int, ...]
    parts: Sequence[Any]


class GatesOfLstm:
    """Keeps what it has made of a tensor, with the tensor, as long as none is written to.

    What has a gradient, or is traced by a compiler, is made each time.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._kinds = {torch.Tensor, torch.nn.Parameter}
        self._is_compiling = torch.compiler.is_compiling

    def of(self, by_input: Any, by_state: Any, bias: Any) -> Sequence[Any]:
        tensors = (by_input, by_state) if bias is None else (by_input, by_state, bias)
        if self._is_compiling() or not self._may_keep(tensors):
            return self._ordered(by_input, by_state, bias)
        versions = tuple([0 if each.is_inference() else each._version for each in tensors])
        kept: _Ordered | None = getattr(by_input, _KEPT, None)
        if kept is None or kept.of[0] is not by_state or kept.of[1] is not bias or kept.versions != versions:
            kept = _Ordered((by_state, bias), versions, self._ordered(by_input, by_state, bias))
            setattr(by_input, _KEPT, kept)
        return kept.parts

    def _may_keep(self, tensors: Sequence[Any]) -> bool:
        if not self._kinds.issuperset(map(type, tensors)):
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
