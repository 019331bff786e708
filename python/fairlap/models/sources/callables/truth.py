"""What callables must answer, and how exactly: from the rounding of the type, and from how it moves the reference.

The reference is evaluated in float64, which its arguments are converted to. Where it cannot be, its answers in its own
type serve. Every number is then moved by its own rounding: a right callable rounds after every operation as well, so it
may be off by a multiple of what that shows. A sum of n terms, added one after the other, is off by the square root of n
besides, and one of equal terms by n. Whole numbers and truth values are exact, unless rounding moves the reference's as
well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.engine.measurement import Notice
from fairlap.models.arrays import Arrays
from fairlap.models.checks.answer_check import output_errors
from fairlap.models.checks.long_sums import widened_by_sums
from fairlap.models.sources.callables.arguments import numbers_of
from fairlap.models.sources.callables.reference import EXACT_ROUNDOFF, Form, Reference, roundoff_of
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.proof import DrawsNumbers, Outputs
from fairlap.models.spec import UNIT_ROUNDOFF, Tolerance

_MULTIPLE = 64.0
_MULTIPLE_OF_FEW_BITS = 8.0  # there products are summed in a wider type
_PLAIN = 1 / 16  # of the error of the reference in its own type: others may be off by four times as much
_LEAST = 4.0  # roundings: an answer that hardly depends on them still rounds its last operations
_OF_A_SUM = 2.0
_DRAWS = 2
_MOST_OFF = 0.1  # of the reference in its own type; by more, its answer in float64 is another one
_LOOSE = 1e-2
_SAME = 1e-9
_MOST_TRIED = 8  # arguments that are replaced, to see whether the answer depends on them


@dataclass(frozen=True)
class Truth:
    references: Mapping[str, Outputs]
    tolerances: dict[str, Tolerance]
    notices: tuple[Notice, ...]


class TruthOfCallables:
    """The proof of one race: ``types`` are those of the answers in the reference's own type."""

    def __init__(self, reference: Reference, form: Form, types: Mapping[str, str]) -> None:
        self._reference, self._form, self._types = reference, form, types
        given = [leaf.dtype for leaf in reference.leaves.values() if leaf.is_float and not leaf.kind.startswith("num")]
        answered = [each for each in types.values() if np.dtype(each).kind == "f"]
        self._roundoff = max((roundoff_of(each) for each in (*given, *answered)), default=EXACT_ROUNDOFF)

    def found(self, sets: Mapping[str, Arrays]) -> Truth:
        first = next(iter(sets))
        called, given = self._reference.called(sets[first], wide=False)
        self._require_same_changes(called.changed(self._reference.leaves, given))
        plain = self._outputs(self._reference.answers(self._form, called))
        wide, why = self._wide(sets[first], plain)
        references = {first: plain if wide is None else wide}
        for which, stored in list(sets.items())[1:]:
            references[which] = self._evaluated(stored, wide=wide is not None)
        for outputs in references.values():
            self._require_usable(outputs)
        self._require_no_drawing(references[first], sets[first], wide=wide is not None)
        moved = [self._evaluated(sets[first], wide=wide is not None, seed=seed) for seed in range(_DRAWS)]
        allowed = {name: self._tolerance(name, references[first], plain, moved) for name in references[first]}
        if wide is not None:
            for which, stored in sets.items():
                allowed = self._widened_by_sums(allowed, stored, references[which])
        notices = [] if wide is not None else [self._in_own_type(why)]
        notices += self._loose(allowed) + self._unnoticed(sets, references, allowed, wide=wide is not None)
        return Truth(references, allowed, tuple(notices))

    def _wide(self, stored: Arrays, plain: Outputs) -> tuple[Outputs | None, str]:
        """Evaluate it in float64; else None, and why not."""
        if self._roundoff <= EXACT_ROUNDOFF:
            return plain, ""
        try:
            found = self._evaluated(stored, wide=True)
        except SourceError as error:
            return None, str(error)
        for name, exact in found.items():
            if exact.shape != plain[name].shape or not np.isfinite(exact).all():
                return None, f"{name} has another shape there, or is not finite"
            norm, off = float(np.linalg.norm(exact)), plain[name] - exact
            if np.isfinite(off).all() and float(np.linalg.norm(off)) > _MOST_OFF * norm:
                return None, f"{name} is another answer there"
        return found, ""

    def _evaluated(self, stored: Arrays, *, wide: bool, seed: int | None = None, other: Any = None) -> Outputs:
        called, _ = self._reference.called(stored, wide=wide, roundoff=self._roundoff, seed=seed, other=other)
        return self._outputs(self._reference.answers(self._form, called))

    def _outputs(self, answers: Mapping[str, npt.NDArray[Any]]) -> Outputs:
        if others := set(answers) ^ set(self._types):
            raise SourceError(
                f"{self._reference.name} answers in one form to some arguments and in another to others "
                f"({', '.join(sorted(others))}); make it return the same names each time",
                code="E_REFERENCE",
            )
        return {name: array.astype(np.float64) for name, array in answers.items()}

    def _require_same_changes(self, changed: set[str]) -> None:
        if unknown := changed - set(self._form.changed):
            raise SourceError(
                f"{self._reference.name} writes to {', '.join(sorted(unknown))} in some calls and not in others; make "
                "it write always, or never",
                code="E_REFERENCE",
            )

    def _require_usable(self, outputs: Outputs) -> None:
        for name, array in outputs.items():
            if not np.isfinite(array).all():
                raise SourceError(
                    f"{name} of {self._reference.name} is not finite for arguments that were drawn, so nothing can be "
                    "compared with it; draw others",
                    code="E_SOURCE_INPUTS",
                )

    def _require_no_drawing(self, outputs: Outputs, stored: Arrays, *, wide: bool) -> None:
        again = self._evaluated(stored, wide=wide)
        allowed = _SAME if wide else max(_SAME, _MULTIPLE * self._roundoff)
        for name, array in outputs.items():
            same_shape = again[name].shape == array.shape
            off = float(np.abs(again[name] - array).max(initial=0.0)) if same_shape else math.inf
            if not off <= allowed * np.abs(array).max(initial=0.0):
                raise DrawsNumbers(
                    f"{self._reference.name} draws random numbers, or keeps a state: called twice on the same "
                    f"arguments, {name} differs by {off:.2g}; make it answer the same each time, or take the random "
                    "numbers as an argument"
                )

    def _tolerance(self, name: str, exact: Outputs, plain: Outputs, moved: list[Outputs]) -> Tolerance:
        reference = exact[name]
        differences = [np.abs(each[name] - reference) for each in moved if each[name].shape == reference.shape]
        if np.dtype(self._types[name]).kind != "f":
            off = [*differences, np.abs(plain[name] - reference)]
            return Tolerance(-1.0, max((float(each.max(initial=0.0)) for each in off), default=0.0), 0.0)
        own = np.abs(plain[name] - reference)
        differences += [_PLAIN * own] if np.isfinite(own).all() else []
        largest = max((float(each.max(initial=0.0)) for each in differences), default=0.0)
        norm = float(np.linalg.norm(reference))
        share = max((float(np.linalg.norm(each)) for each in differences), default=0.0) / norm if norm else 0.0
        scale = float(np.sqrt(np.mean(np.square(reference)))) if reference.size else 0.0
        times = _MULTIPLE if self._has_many_bits else _MULTIPLE_OF_FEW_BITS
        in_sums = self._roundoff * _OF_A_SUM * self._terms(reference.size) ** 0.5 if self._has_many_bits else 0.0
        relative = times * max(share, _LEAST * self._roundoff) + in_sums
        absolute = times * max(largest, _LEAST * self._roundoff * scale) + in_sums * scale
        return Tolerance(max(min(0.999, 1 - relative**2 / 2), 0.9), absolute, relative)

    def _widened_by_sums(
        self, allowed: dict[str, Tolerance], stored: Arrays, reference: Outputs
    ) -> dict[str, Tolerance]:
        """Of equal arguments, whose roundings are no random ones; those of few bits are summed in a wider type."""
        written = set(self._form.changed) - set(self._form.restored)
        leaves = self._reference.leaves.values()
        floats = [leaf for leaf in leaves if leaf.is_float and leaf.name not in written]
        inexact = {name: each for name, each in allowed.items() if np.dtype(self._types[name]).kind == "f"}
        if not (floats and inexact and self._has_many_bits):
            return allowed
        largest = max(floats, key=lambda leaf: math.prod(leaf.shape))

        def answers_to(values: npt.NDArray[Any]) -> Outputs:
            return self._evaluated(stored, wide=True, other={largest.name: values})

        numbers = numbers_of(largest, stored[largest.name])
        with suppress(SourceError):  # the reference need not take others
            return allowed | widened_by_sums(inexact, numbers, self._roundoff, reference, answers_to)
        return allowed

    @property
    def _has_many_bits(self) -> bool:
        return self._roundoff <= UNIT_ROUNDOFF["fp32"]

    def _terms(self, answers: int) -> float:
        """How many numbers may go into one of so many answers, where each goes into one."""
        largest = max((math.prod(leaf.shape) for leaf in self._reference.leaves.values()), default=1)
        return max(1.0, largest / max(1, answers))

    def _in_own_type(self, why: str) -> Notice:
        return Notice(
            "W_REFERENCE_TYPE",
            f"{self._reference.name} has no answer in float64 ({why}), so answers are compared with those in its own "
            "type",
        )

    def _loose(self, allowed: Mapping[str, Tolerance]) -> list[Notice]:
        usual = _MULTIPLE_OF_FEW_BITS * _LEAST * self._roundoff
        names = [name for name, each in allowed.items() if each.relative > max(_LOOSE, 2 * usual)]
        names += [
            name for name, each in allowed.items() if np.dtype(self._types[name]).kind != "f" and each.absolute > 0
        ]
        if not names:
            return []
        return [
            Notice(
                "W_LOOSE_CHECK",
                f"rounding alone moves {', '.join(names)} of {self._reference.name} so far that answers may be off by "
                f"{max(max(allowed[name].relative, allowed[name].absolute) for name in names):.2g} and count as right; "
                "other arguments may be better",
            )
        ]

    def _unnoticed(
        self,
        sets: Mapping[str, Arrays],
        references: Mapping[str, Outputs],
        allowed: Mapping[str, Tolerance],
        *,
        wide: bool,
    ) -> list[Notice]:
        """Warn of arguments whose values the check would not miss."""
        first, second = list(sets)[:2]
        if _all_right(references[second], references[first], allowed):
            return [
                Notice(
                    "W_WEAK_PROOF",
                    f"the answer of {self._reference.name} is the same to all arguments that were drawn: a callable "
                    "that returned an old answer would not be noticed; draw arguments that change it",
                )
            ]
        read = [
            name for name, leaf in self._reference.leaves.items() if leaf.is_float and name not in self._form.changed
        ]
        tried = read[:_MOST_TRIED] if len(self._reference.leaves) > 1 else []
        silent = [name for name in tried if self._is_silent(name, sets, references[first], allowed, wide=wide)]
        if not silent:
            return []
        text = f"the answer does not depend on {', '.join(silent)}: a callable that ignores it would not be noticed"
        return [Notice("W_INPUT_UNNOTICED", text)]

    def _is_silent(
        self, name: str, sets: Mapping[str, Arrays], exact: Outputs, allowed: Mapping[str, Tolerance], *, wide: bool
    ) -> bool:
        first, second = list(sets)[:2]
        other = numbers_of(self._reference.leaves[name], sets[second][name])
        try:
            found = self._evaluated(sets[first], wide=wide, other={name: other})
        except SourceError:  # arguments of two draws need not fit each other
            return False
        return _all_right(found, exact, allowed)


def _all_right(found: Outputs, exact: Outputs, allowed: Mapping[str, Tolerance]) -> bool:
    return all(output_errors(name, found[name], each, allowed[name]).right for name, each in exact.items())
