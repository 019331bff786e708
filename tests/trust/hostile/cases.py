"""Races of the exploits and of the honest callables, and who was ranked in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlap.scenarios.callables.untrusted.race import compare_untrusted

_LIMIT_S = 20.0
_CALLS = 16  # in a sample, whatever the machine does meanwhile
HERE = Path(__file__).parent
EXPLOITS = sorted(path.parent.name + "/" + path.stem for path in HERE.glob("exploits/*/*.py"))
_TASK = (f"{HERE}/task.py:reference", f"{HERE}/task.py:draw")
_NUMBERS = ("order", "numbers")
HONEST: tuple[tuple[str, str, str, str], ...] = (  # the file, its callables, their reference and their inputs
    ("arrays", "plain in_place_on_a_copy preallocated plan_by_shape kept_by_content strided_view in_float64", *_TASK),
    ("python", "plain partial instance with_generator cached_scalar buffer", "scaled_sum", "values_and_scale"),
    ("forms", "several", "several", "two"),
    ("forms", "by_name", "by_name", "two"),
    ("forms", "spectrum", "spectrum", "waves"),
    ("forms", "order view_of_memory", *_NUMBERS),
    ("forms", "nothing", "nothing", "empty"),
    ("forms", "by_keyword", "by_keyword", "named"),
    ("forms", "flags", "flags", "one"),
    ("native", "c_sort in_threads slow_first_call", *_NUMBERS),
    ("tensors", "softmax into_buffer", "softmax", "tensors"),
    ("tensors", "half", "half", "halves"),
)


@dataclass(frozen=True)
class Found:
    """How one callable fared. ``code`` is empty for one that is ranked."""

    name: str
    code: str
    reason: str
    checked: int


def codes(exploit: str) -> set[str]:
    """Return those that its first line names, with one of which it is excluded.

    An exploit that finds nothing to attack raises another, or is ranked.
    """
    with (HERE / "exploits" / f"{exploit}.py").open() as text:
        return set(re.findall(r"E_\w+", text.readline()))


def exploits(names: Sequence[str], *, blocks: int, limit_s: float) -> list[Found]:
    """Race exploits with an honest callable, which comes last in what is returned."""
    files = [f"{HERE}/exploits/{name}.py:kernel" for name in names]
    return _raced([*files, f"{HERE}/honest/arrays.py:plain"], *_TASK, blocks, limit_s)


def honest(case: tuple[str, str, str, str], *, blocks: int) -> list[Found]:
    file, names, *of_task = case
    reference, inputs = (each if ":" in each else f"{HERE}/honest/tasks.py:{each}" for each in of_task)
    return _raced([f"{HERE}/honest/{file}.py:{name}" for name in names.split()], reference, inputs, blocks, _LIMIT_S)


def _raced(names: Sequence[str], reference: str, inputs: str, blocks: int, limit_s: float) -> list[Found]:
    result = compare_untrusted(
        names,
        reference=reference,
        inputs=inputs,
        blocks=blocks,
        calls_per_sample=_CALLS,
        budget=60.0,
        limit=limit_s,
    )
    checked = {row.name: row.answers_checked for row in result.rows}
    ranked = [Found(name, "", "", checked[name]) for name in checked]
    excluded = [Found(name, why.code, why.reason, 0) for name, why in result.excluded.items()]
    return sorted([*ranked, *excluded], key=lambda found: names.index(found.name))
