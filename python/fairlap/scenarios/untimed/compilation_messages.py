"""The messages about what compiling did.

A worker imports this module before it says hello, so it must stay light.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from fairlap.frameworks.contract_parts.compilation import Operators
from fairlap.request.fields.sizes.other_inputs import InputType
from fairlap.scenarios.asking import Ask, Reply


class Described(Reply, frozen=True, tag="described"):
    """As the framework counts it. What is None or empty for a reason has it in ``absent``, by the field's name."""

    graphs: int | None = None  # that the compiler made of the model
    graph_breaks: int | None = None
    break_reasons: tuple[str, ...] = ()  # one for each break
    operators: Operators | None = None
    takes_any_batch: bool = False  # else it has to be built again for another one
    absent: dict[str, str] = field(default_factory=dict)


class Describe(Ask[Described], frozen=True, tag="describe"):
    """Report what compiling did so far."""

    served_by: ClassVar[str] = "fairlap.scenarios.untimed.compilation:describe"


class Resized(Reply, frozen=True, tag="resized"):
    """The first call on these inputs, and what calls cost after it."""

    first_s: float | None = None
    call_s: float | None = None  # the median of the later calls
    built_s: float | None = None  # building it again, where it had to be
    compiled: int | None = None  # graphs that the first call compiled
    reasons: tuple[str, ...] = ()  # the framework's, for compiling again
    why: str = ""  # there are no times

    @property
    def stall_s(self) -> float | None:
        """How much longer the first call took than a later one, with building where that was needed."""
        if self.first_s is None or self.call_s is None:
            return None
        return (self.built_s or 0.0) + max(self.first_s - self.call_s, 0.0)


class Resize(Ask[Resized], frozen=True, tag="resize"):
    """Call the contestant with inputs of another batch, other sizes or another type.

    First once, then some more times.
    """

    served_by: ClassVar[str] = "fairlap.scenarios.untimed.compilation:resize"

    batch: int
    inputs: str  # a safetensors file
    free_sizes: dict[str, int] = field(default_factory=dict)  # of the model in which these inputs are
    input_type: InputType | None = None  # to which the framework takes them before the first call
