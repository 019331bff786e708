"""What `fairlap time` does with functions of C libraries: the arguments they get, and which options are not theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlap.errors import InvalidRequest

if TYPE_CHECKING:
    from fairlap.engine.measurement import Measurement
    from fairlap.scenarios.callables.result import InProcessComparison

_NOT_THEIRS = (
    *("inputs", "reference", "axis", "bytes", "flops"),
    *("device", "stream", "method", "cache", "graph", "grid", "block", "shared"),
)


@dataclass(frozen=True)
class CFunctions:
    names: Sequence[str]
    arguments: str  # as they are given

    def timed(self, options: Mapping[str, Any]) -> Measurement | InProcessComparison:
        """Time the one function, or compare several whose answers are equal."""
        from dataclasses import replace

        from fairlap.engine import measure
        from fairlap.scenarios.callables.c_answers import answers_checked, functions_with_equal_answers
        from fairlap.scenarios.callables.in_process import compare

        any_answers = bool(options.get("any_answers"))
        functions = functions_with_equal_answers(self.names, self.arguments, any_answers=any_answers)
        if len(functions) == 1:
            [(name, function)] = functions.items()
            return measure(function, name=name, **options)
        compared = compare(functions, **{**options, "any_answers": True})
        return compared if any_answers else replace(compared, answers=answers_checked(self.arguments))


def c_functions_asked(names: Sequence[str], options: dict[str, Any], *, untrusted: bool) -> CFunctions | None:
    """Take their arguments out of ``options``; None where no name is that of a function of a library."""
    from fairlap.engine.c_functions import is_of_library

    theirs = [name for name in names if is_of_library(name)]
    if not theirs:
        return None
    if len(theirs) < len(names):
        raise InvalidRequest("C functions and Python callables take other arguments; time them in separate commands")
    given = [name for name in _NOT_THEIRS if options.get(name)] + (["untrusted"] if untrusted else [])
    if given:
        raise InvalidRequest(
            f"{theirs[0]} is a C function, which --args gives its arguments on the CPU; leave --{given[0]} out"
        )
    return CFunctions(names, options.pop("arguments", ""))
