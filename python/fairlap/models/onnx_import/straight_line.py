"""A model's steps as one Python function without a loop.

A person who writes a network in PyTorch keeps values in variables. Looking each of them up by its name, as a loop over
the steps does, makes a small network some ten per cent slower than that person's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fairlap.models.onnx_import.layout import Step

Function = Callable[[Mapping[str, Any], Mapping[str, Any]], tuple[Any, ...]]
"""Of inputs and weights, both by name; gives the outputs by place."""


class _Source:
    """Lines of a function, and what they name. No text of a file is in them."""

    def __init__(self, constants: Mapping[str, Any]) -> None:
        self.lines = ["def compute(inputs, weights):"]
        self.given: dict[str, Any] = {"several": (tuple, list)}
        self._variables: dict[str, str] = {}
        for name, value in constants.items():
            self.given[self.variable(name)] = value

    def variable(self, name: str) -> str:
        return self._variables.setdefault(name, f"value_{len(self._variables)}") if name else "None"

    def bound(self, value: Any) -> str:
        name = f"given_{len(self.given)}"
        self.given[name] = value
        return name

    def add(self, line: str) -> None:
        self.lines.append(f"    {line}")

    def function(self) -> Function:
        exec(compile("\n".join(self.lines), "<steps of a model>", "exec"), self.given)
        made: Function = self.given["compute"]
        return made


def straight_line(
    steps: Sequence[Step],
    last_uses: Sequence[tuple[str, ...]],
    constants: Mapping[str, Any],
    inputs: Iterable[str],
    weights: Iterable[str],
    outputs: Sequence[str],
    enter: Callable[[Any], Any] | None,
) -> Function:
    """Write the function. A value is let go after its last use; ``enter``, if any, takes each input and weight."""
    source = _Source(constants)
    used = {name for step in steps for name in step.inputs} | set(outputs)
    entering = "" if enter is None else source.bound(enter)
    for kind, names in (("inputs", inputs), ("weights", weights)):
        for name in names:
            if name in used:
                source.add(f"{source.variable(name)} = {entering}({kind}[{source.bound(name)}])")
    for step, finished in zip(steps, last_uses, strict=True):
        _add(source, step, used)
        if done := [source.variable(name) for name in finished if name in used and name not in constants]:
            source.add(f"{' = '.join(done)} = None")
    source.add(f"return ({''.join(f'{source.variable(name)}, ' for name in outputs)})")
    return source.function()


def _add(source: _Source, step: Step, used: set[str]) -> None:
    call = f"{source.bound(step.function)}({', '.join(source.variable(name) for name in step.inputs)})"
    if len(step.outputs) == 1:
        result = source.variable(step.outputs[0])
        source.add(f"{result} = {call}")
        source.add(f"if isinstance({result}, several): {result} = {result}[0]")
        return
    source.add(f"results = {call}")
    source.add("if not isinstance(results, several): results = (results,)")
    for place, name in enumerate(step.outputs):
        if name in used:
            source.add(f"{source.variable(name)} = results[{place}]")
    source.add("results = None")
