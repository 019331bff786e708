"""The table of operators: what each computes, once, in terms that all libraries share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from fairlap.models.onnx_import.graph import Tensor

Layout = Literal["as_in_file", "elementwise", "axes", "spatial"]
"""What an operator does with images whose channels are last. ``spatial`` computes in the layout of the library,
``elementwise`` in any, ``axes`` in any if its axes are renumbered; all others take arrays as the file has them."""

Attributes = dict[str, Any]
Resolve = Callable[[Attributes, Sequence[Tensor | None], Sequence[Tensor]], Attributes]
Bind = Callable[[Any, Attributes], Callable[..., Any]]


@dataclass(frozen=True)
class Operator:
    name: str
    compute: Callable[..., Any]  # compute(library, *inputs, **attributes)
    operands: Mapping[str, int]  # inputs that must be known when building, by the attribute that they become
    scalars: Mapping[str, int]  # inputs that become Python numbers where they are known
    layout: Layout
    renumber: Callable[[Attributes, Sequence[int]], Attributes] | None  # for ``axes``
    kernels: Mapping[int, str]  # inputs of ``spatial`` operators that hold kernels, and the layout they want
    resolve: Resolve | None  # what sizes decide, computed once; arrays in its result become the library's
    refuse: Callable[[Attributes], str | None] | None  # why these attributes are not supported
    ignores: frozenset[str]  # attributes that make no difference to the function
    folds: bool  # whether it is cheap enough to be computed while loading
    bind: Bind | None  # the library's function of the inputs, where calling ``compute`` each time costs more
    accepts: frozenset[str] = field(default_factory=frozenset)


OPERATORS: dict[str, Operator] = {}


def operator(
    *names: str,
    operands: Mapping[str, int] | None = None,
    scalars: Mapping[str, int] | None = None,
    layout: Layout = "as_in_file",
    renumber: Callable[[Attributes, Sequence[int]], Attributes] | None = None,
    kernels: Mapping[int, str] | None = None,
    resolve: Resolve | None = None,
    reads: Sequence[str] = (),
    refuse: Callable[[Attributes], str | None] | None = None,
    folds: bool = True,
    bind: Bind | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function into the table under the names of ONNX operators.

    Its keywords are the attributes it accepts, besides those that only ``resolve`` ``reads``, or nothing if
    there is no ``resolve``. Four keywords are filled by the builder: ``opset``, ``count`` (how many
    outputs are used), ``sizes`` (the shapes of the outputs) and ``dtype`` (of the first output).
    """

    def enter(compute: Callable[..., Any]) -> Callable[..., Any]:
        parameters = inspect.signature(compute).parameters.values()
        accepts = frozenset((*reads, *(each.name for each in parameters if each.kind is each.KEYWORD_ONLY)))
        for name in names:
            OPERATORS[name] = Operator(
                name,
                compute,
                operands or {},
                scalars or {},
                layout,
                renumber,
                kernels or {},
                resolve,
                refuse,
                frozenset() if resolve else frozenset(reads),
                folds,
                bind,
                accepts,
            )
        return compute

    return enter
