"""What compiling did to a contestant, as its framework reports it.

Whatever speaks the worker protocol imports this module, so it must stay light.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlap.request.fields.sizes.other_inputs import InputType

if TYPE_CHECKING:
    from fairlap.models.arrays import Arrays


Types = Mapping[str, InputType]
"""By the input's name."""

NO_TYPES: Types = {}


@dataclass(frozen=True)
class Operators:
    """How many operators a compiler was given, and how many kernels a call of what it made starts."""

    before: int
    after: int
    counted: str  # what these are, in the framework's words: "FX operators; Inductor's kernels and library calls"


@dataclass(frozen=True)
class Compilation:
    """Made and asked in processes that are not raced, so it may cost time and memory.

    ``bind`` is as that of a contestant, for inputs of any batch and as the framework's users call it; None where a
    model is built for one batch and has to be built again. ``bind_as`` is as ``bind``, with the inputs that it names in
    other types than they have. What the framework raises is quoted, unless ``fixed_types`` says why it refuses them.
    """

    graphs: Callable[[], int] | None = None  # that were compiled so far
    breaks: Callable[[], Sequence[str]] | None = None  # the reason of each graph break so far
    operators: Callable[[], Operators] | None = None  # of what was compiled for the contestant's own batch
    bind: Callable[[Arrays], Callable[[], Any]] | None = None
    bind_as: Callable[[Arrays, Types], Callable[[], Any]] | None = None
    fixed_types: str = ""
    # What the framework says of why it compiles again while this context is open.
    reasons: Callable[[], AbstractContextManager[list[str]]] = lambda: nullcontext([])
    absent: Mapping[str, str] = field(default_factory=dict)  # why one of the first three is None, by its name
