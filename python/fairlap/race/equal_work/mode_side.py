"""How calls of one mode are proven right: each mode names its own in its facts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fairlap.engine.measurement import Notice
from fairlap.models.arrays import Arrays
from fairlap.models.modes import MODES
from fairlap.models.spec import Spec
from fairlap.plugins import class_at
from fairlap.request.work import Mode, Precision, Work
from fairlap.scenarios.process_result import AnswerError

if TYPE_CHECKING:
    from fairlap.race.equal_work.materials import Materials


class ModeSide(ABC):
    """Has no state: one object serves all works."""

    tells_inputs_apart: ClassVar[bool] = True  # whether an answer to other inputs is looked for in a wrong one
    refers_by_precision: ClassVar[bool] = False  # whether the reference is another one in each precision
    compares_peers: ClassVar[bool] = False  # whether answers are compared with each other too
    ranks_alone: ClassVar[bool] = False  # whether a step of one rank alone is timed at the end
    checked_at_batch: ClassVar[str] = "against the reference"

    @abstractmethod
    def reference(self, materials: Materials, which: str) -> Mapping[str, Any]:
        """Compute what answers are compared with, in float64."""

    @abstractmethod
    def errors(self, materials: Materials, got: Arrays, which: str, when: str) -> list[AnswerError]:
        """Compare an answer to these inputs; raise OtherWork for one that lacks something."""

    def drawn_errors(self, materials: Materials, got: Arrays, which: str, when: str) -> list[AnswerError]:
        """Compare what a drawn call in the middle of the timing left."""
        return self.errors(materials, got, which, when)

    @abstractmethod
    def answer_bytes(self, spec: Spec, work: Work) -> int:
        """Estimate the size of an answer."""

    @abstractmethod
    def copies(self, materials: Materials, got: Arrays, batch: int) -> int:
        """Count the answers to the race's own items in one at this batch, which has them again and again."""

    def copy(self, materials: Materials, name: str, array: np.ndarray, number: int) -> np.ndarray:
        """Take the part of an array of the answer that belongs to one of these copies."""
        return array

    def notices(self, errors: list[AnswerError]) -> list[Notice]:
        """Warn about what was right, and only just."""
        return []

    def why_not_in(self, precision: Precision) -> str:
        """Say why calls of this mode are not raced in the precision; empty where they are."""
        return ""

    def why_no_ranks(self, work: Work, spec: Spec) -> str:
        """Say why ranks cannot share a call; empty where they can."""
        return ""


@cache
def mode_side(mode: Mode) -> ModeSide:
    return class_at(MODES[mode].proof, ModeSide, "the mode")()  # type: ignore[type-abstract]
