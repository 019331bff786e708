"""The weights that a converted file holds. It keeps neither their names nor their layouts, and it may fold one into
another, so each is looked for by its values: with axes in any order, bit for bit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.frameworks.answers import Answers
from fairlap.workloads.workload import Arrays

Array = npt.NDArray[Any]


def weights_in(interpreter: Any, given: Arrays) -> Answers:
    """Those of the given weights that are in the file, as they stand there, in the layout of the given."""
    constants: defaultdict[tuple[int, ...], list[Array]] = defaultdict(list)
    for constant in _constants(interpreter):
        constants[_sizes(constant)].append(constant)
    found: Answers = {}
    for name, weight in given.items():
        for constant in constants[_sizes(weight)]:
            turned = _turned_to(weight, constant)
            if turned is not None:
                # A copy: the interpreter refuses to run while somebody looks into its memory.
                found[name] = np.array(turned, dtype=np.float32, order="C")
                break
    return found


def told(found: Answers, given: Arrays) -> str:
    if found.keys() == given.keys():
        return "found by value in the file's bytes; the interpreter cannot be asked"
    return f"not read back: the file holds {len(found)} of {len(given)} as they are, the others folded into one another"


def _constants(interpreter: Any) -> Iterator[Array]:
    passed = {each["index"] for each in (*interpreter.get_input_details(), *interpreter.get_output_details())}
    for detail in interpreter.get_tensor_details():
        if detail["dtype"] is not np.float32 or detail["index"] in passed:
            continue
        try:
            yield interpreter.tensor(detail["index"])()
        except ValueError:  # an intermediate result, which has no memory yet
            continue


def _sizes(array: Array) -> tuple[int, ...]:
    return tuple(sorted(size for size in array.shape if size > 1))


def _turned_to(weight: Array, constant: Array) -> Array | None:
    """The first and last elements stay where they are in every order of the axes: quick to rule most out."""
    if constant.flat[0] != weight.flat[0] or constant.flat[-1] != weight.flat[-1]:
        return None
    aim, source = weight.squeeze(), constant.squeeze()
    for axes in permutations(range(source.ndim)):
        turned = source.transpose(axes)
        if turned.shape == aim.shape and np.array_equal(turned, aim):
            return turned.reshape(weight.shape)
    return None
